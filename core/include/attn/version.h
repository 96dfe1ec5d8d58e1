/* version.h: the version that a program was compiled with, and the version that it runs with. */
#ifndef ATTN_VERSION_H
#define ATTN_VERSION_H

/* Around the declarations of each header, so that a program in C++ links. */
#ifdef __cplusplus
#define ATTN_BEGIN_C extern "C" {
#define ATTN_END_C   }
#else
#define ATTN_BEGIN_C
#define ATTN_END_C
#endif

#define ATTN_VERSION_MAJOR 0
#define ATTN_VERSION_MINOR 2
#define ATTN_VERSION_PATCH 0
/* One number to compare: 1000000 major + 1000 minor + patch. */
#define ATTN_VERSION_NUMBER (1000000 * ATTN_VERSION_MAJOR + 1000 * ATTN_VERSION_MINOR + ATTN_VERSION_PATCH)

ATTN_BEGIN_C

/* ATTN_VERSION_NUMBER of the library that runs, which may be newer than the headers. */
int attn_version(void);

ATTN_END_C

#endif
