/*
 * openapi.c: server/openapi.json, embedded as it is by the assembler.
 *
 * From a C file rather than from one in assembly: the compiler then says for itself that the stack is not executable.
 */
#include "http/openapi.h"

__asm__(".pushsection .rodata\n"
        "openapi_json_begin:\n"
        ".incbin \"server/openapi.json\"\n"
        "openapi_json_end:\n"
        ".popsection\n");

extern const char openapi_json_begin[] __attribute__((visibility("hidden")));
extern const char openapi_json_end[] __attribute__((visibility("hidden")));

struct text_span openapi_text(void)
{
    return (struct text_span){openapi_json_begin, (size_t)(openapi_json_end - openapi_json_begin)};
}
