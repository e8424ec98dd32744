// Constants and calls that Swift cannot reach, and SHA-256 (names of blob files).
#ifndef CVARVE_H
#define CVARVE_H
#endif
