/// Puts aside the macros of other headers that are named as something in ours: Xlib.h has Status
/// and None, windows.h has max, and programs define letters. Every public header includes this, and
/// foreign_macros_on.h at its end, which brings them back. There is no guard: the two are included
/// as often as there are headers.
#include "gradsmith/language.h"

#pragma push_macro("B")
#undef B
#pragma push_macro("F")
#undef F
#pragma push_macro("I")
#undef I
#pragma push_macro("L")
#undef L
#pragma push_macro("NOTSET")
#undef NOTSET
#pragma push_macro("None")
#undef None
#pragma push_macro("SAME_LOWER")
#undef SAME_LOWER
#pragma push_macro("SAME_UPPER")
#undef SAME_UPPER
#pragma push_macro("Status")
#undef Status
#pragma push_macro("T")
#undef T
#pragma push_macro("U")
#undef U
#pragma push_macro("VALID")
#undef VALID
#pragma push_macro("W")
#undef W
#pragma push_macro("X")
#undef X
#pragma push_macro("Y")
#undef Y
#pragma push_macro("max")
#undef max
