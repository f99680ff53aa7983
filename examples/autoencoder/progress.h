#ifndef AUTOENCODER_PROGRESS_H_
#define AUTOENCODER_PROGRESS_H_

#include <unistd.h>

#include <cstdio>
#include <string>

/// Progress shows a line after every tenth of the training and, where standard output is a
/// terminal, a bar in between; nothing when quiet.
class Progress {
 public:
  Progress(int epochs, bool quiet)
      : epochs_(epochs), quiet_(quiet), terminal_(isatty(STDOUT_FILENO) != 0) {}

  /// ShowBar shows how much of the training, from 0 to 1, is done.
  void ShowBar(int epoch, double done) const {
    if (quiet_ || !terminal_) {
      return;
    }
    constexpr std::size_t kWidth = 40;
    const auto filled = static_cast<std::size_t>(kWidth * done);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::printf("\repoch %3d/%d  [%s]", epoch, epochs_, bar.c_str());
    std::fflush(stdout);
  }

  [[nodiscard]] bool HasLine(int epoch) const {
    constexpr int kLines = 10;
    const int step = (epochs_ + kLines - 1) / kLines;
    return !quiet_ && (epoch == 1 || epoch == epochs_ || epoch % step == 0);
  }

  void ShowLine(int epoch, double loss, double held_out_loss, double alignment) const {
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
