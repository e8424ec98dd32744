// Nothing but the header: a target needs one source.

#include "CMalloc.h"
