#ifndef AUTOENCODER_PROGRESS_H_
#define AUTOENCODER_PROGRESS_H_

#include <unistd.h>

#include <cstdio>
#include <string>

/// Progress shows a bar while an epoch runs, where standard output is a terminal, and a line when
/// it has ended; nothing when quiet.
class Progress {
 public:
  Progress(int epochs, bool quiet)
      : epochs_(epochs), quiet_(quiet), terminal_(isatty(STDOUT_FILENO) != 0) {}

  void ShowBatch(int epoch, std::size_t done, std::size_t batches) const {
    if (quiet_ || !terminal_) {
      return;
    }
    constexpr std::size_t kWidth = 40;
    std::string bar(kWidth, '.');
    bar.replace(0, kWidth * done / batches, kWidth * done / batches, '#');
    std::printf("\repoch %3d/%d  [%s]", epoch, epochs_, bar.c_str());
    std::fflush(stdout);
  }

  void EndEpoch(int epoch, double loss, double held_out_loss, double alignment) const {
    if (quiet_) {
      return;
    }
    constexpr const char* kClearLine = "\r\033[K";
    std::printf(
        "%sepoch %3d/%d  loss %.5f  held-out %.5f  cosine(w_b, w_f transposed) %.3f\n",
        terminal_ ? kClearLine : "", epoch, epochs_, loss, held_out_loss, alignment);
    std::fflush(stdout);
  }

 private:
  int epochs_;
  bool quiet_;
  bool terminal_;
};

#endif  // AUTOENCODER_PROGRESS_H_
