#ifndef GRADSMITH_GRADSMITH_H_
#define GRADSMITH_GRADSMITH_H_

/// All of Gradsmith: the typed functions of every op, and the dynamic door.
#include "gradsmith/language.h"

#if __cplusplus >= 202002L  // else the one error there says enough
#include "gradsmith/attributes.h"
#include "gradsmith/cache.h"
#include "gradsmith/context.h"
#include "gradsmith/device_buffer.h"
#include "gradsmith/kernel.h"
#include "gradsmith/ops.h"
#include "gradsmith/registry.h"
#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "gradsmith/types.h"
#endif

#endif  // GRADSMITH_GRADSMITH_H_
