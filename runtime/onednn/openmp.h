#ifndef GRADSMITH_ONEDNN_OPENMP_H_
#define GRADSMITH_ONEDNN_OPENMP_H_

/// What is called of OpenMP's library (OpenMP 5.2, section 18). Its header belongs to one compiler,
/// and others that read the sources need not have it.
extern "C" {
int omp_in_parallel();
int omp_get_thread_limit();
int omp_get_max_active_levels();
void omp_set_max_active_levels(int levels);
int omp_get_max_threads();
void omp_set_num_threads(int threads);
int omp_get_dynamic();
void omp_set_dynamic(int dynamic);
}

#endif  // GRADSMITH_ONEDNN_OPENMP_H_
