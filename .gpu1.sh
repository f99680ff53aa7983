set -x
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DGRADSMITH_CUDA=ON -DGRADSMITH_CUDA_ARCHITECTURES=90-real | grep gradsmith:
time ninja -C build/gpu gradsmith_runtime_tests gradsmith_emulated_gpu gradsmith_emulated_cudnn gradsmith_emulated_gpu_tests > $OUT/build.log 2>&1 || { grep -E 'error|FAILED' -A5 $OUT/build.log | head -60; exit 1; }
export GRADSMITH_CACHE=off
library=$(sed -n 's/^GRADSMITH_CUDNN_LIBRARY:FILEPATH=//p' build/gpu/CMakeCache.txt); export GRADSMITH_CUDNN_LIBRARY=$library
time build/gpu/tests/gradsmith_runtime_tests --gtest_filter='*GraphWorkspace*:*Capture*:*CallGraph*:*Policies*:*Threads*:CudaErrors*:*ConvAlgorithms*' --gtest_brief=1 2>&1 | tail -60
time compute-sanitizer --tool memcheck build/gpu/tests/gradsmith_runtime_tests --gtest_filter='*GraphWorkspace*' --gtest_brief=1 2>&1 | tail -15
(cd build/gpu; export LD_LIBRARY_PATH=$PWD/tests/emulated_gpu EMULATED_GPU_ORDER=shuffled GRADSMITH_CUDNN_LIBRARY=$PWD/tests/emulated_gpu/libgradsmith_emulated_cudnn.so; tests/gradsmith_runtime_tests --gtest_filter='*GraphWorkspace*:*Capture*-*NeitherAllocateNorWait:CudaCapture.Growth*:CudaCapture.AllocatesFor*' --gtest_brief=1 2>&1 | tail -40; tests/emulated_gpu/gradsmith_emulated_gpu_tests --gtest_brief=1 | tail -5)
