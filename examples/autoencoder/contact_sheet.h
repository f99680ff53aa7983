#ifndef AUTOENCODER_CONTACT_SHEET_H_
#define AUTOENCODER_CONTACT_SHEET_H_

#include <string>

#include "tensor.h"

/// CheckIsWritable throws a std::runtime_error where no file can be written there. What is there
/// stays as it is.
void CheckIsWritable(const std::string& path);

/// WriteContactSheet writes a PNG with one row of originals and their reconstructions below, both
/// (N, 1, 8, 8), enlarged. Ink from 0 to 1 is black to white. Throws std::runtime_error.
void WriteContactSheet(
    const std::string& path,
    const Tensor& originals,
    const Tensor& reconstructions);

#endif  // AUTOENCODER_CONTACT_SHEET_H_
