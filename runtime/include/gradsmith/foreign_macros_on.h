/// Brings back what foreign_macros_off.h has put aside.
#include "gradsmith/language.h"

#pragma pop_macro("B")
#pragma pop_macro("F")
#pragma pop_macro("I")
#pragma pop_macro("L")
#pragma pop_macro("NOTSET")
#pragma pop_macro("None")
#pragma pop_macro("SAME_LOWER")
#pragma pop_macro("SAME_UPPER")
#pragma pop_macro("Status")
#pragma pop_macro("T")
#pragma pop_macro("U")
#pragma pop_macro("VALID")
#pragma pop_macro("W")
#pragma pop_macro("X")
#pragma pop_macro("Y")
#pragma pop_macro("max")
