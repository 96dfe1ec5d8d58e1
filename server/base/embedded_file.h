/*
 * embedded_file.h: embeds a file in the program.
 *
 * The macro is used in C files, not in an assembly file, so that the compiler marks the stack as not executable.
 */
#ifndef BASE_EMBEDDED_FILE_H
#define BASE_EMBEDDED_FILE_H

#include <stddef.h> /* for sizes of files */

/* Defines name_begin, at a multiple of 64, and name_end around the bytes of the file; a NUL follows them. */
#define EMBEDDED_FILE(name, path)                                                                                      \
    __asm__(".pushsection .rodata\n.balign 64\n" #name "_begin:\n"                                                     \
            ".incbin \"" path "\"\n" #name "_end:\n"                                                                   \
            ".byte 0\n"                                                                                                \
            ".popsection\n");                                                                                          \
    extern const char name##_begin[] __attribute__((visibility("hidden")));                                            \
    extern const char name##_end[] __attribute__((visibility("hidden")))

#endif
