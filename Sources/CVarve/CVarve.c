#include "CVarve.h"
