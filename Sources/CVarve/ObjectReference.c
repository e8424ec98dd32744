// A call of Swift's runtime that Swift itself may not name.
#include "CVarve.h"

// Exported by every Swift runtime with a stable interface: what reading a weak reference calls. NULL
// when the object's end has begun. No header declares it.
extern void *swift_tryRetain(void *object);

void *varve_try_retain(void *object) { return swift_tryRetain(object); }
