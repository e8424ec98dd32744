// The headers of liblz4, for the laboratory of leaf layouts.
#ifndef CLZ4_BLOCKS_SHIM_H
#define CLZ4_BLOCKS_SHIM_H
#include <lz4.h>
#endif
