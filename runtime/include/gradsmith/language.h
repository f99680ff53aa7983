#ifndef GRADSMITH_LANGUAGE_H_
#define GRADSMITH_LANGUAGE_H_

/// What every error after this one comes from.
#if __cplusplus < 202002L
#error "gradsmith needs C++20: compile with -std=c++20 or later"
#endif

#endif  // GRADSMITH_LANGUAGE_H_
