/*
 * embedded_file.h: a file that is part of the program.
 *
 * From C files rather than from one in assembly: the compiler then says for itself that the stack is not executable.
 */
#ifndef BASE_EMBEDDED_FILE_H
#define BASE_EMBEDDED_FILE_H

#include <stddef.h> /* for sizes of files */

/* The file as name_begin to name_end, where a NUL follows. */
#define EMBEDDED_FILE(name, path)                                                                                      \
    __asm__(".pushsection .rodata\n" #name "_begin:\n"                                                                 \
            ".incbin \"" path "\"\n" #name "_end:\n"                                                                   \
            ".byte 0\n"                                                                                                \
            ".popsection\n");                                                                                          \
    extern const char name##_begin[] __attribute__((visibility("hidden")));                                            \
    extern const char name##_end[] __attribute__((visibility("hidden")))

#endif
