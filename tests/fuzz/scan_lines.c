/*
 * scan_lines.c: the tensor scanner for scanner.py: each line of the input is a type and a text; each line of the output
 * the status, the shape and the bytes of what was read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json/skim.h"
#include "codec/tensor/scan.h"

enum { ARENA_BYTES = 1 << 24 };

static attn_status scan(const char *text, attn_dtype dtype, attn_arena *arena, attn_tensor *tensor)
{
    struct lifted_text array = {.text = text};
    attn_error err;
    size_t at;
    const char *end = array_end_find(text, text + strlen(text), &(struct pace){.bytes = 0}, &array.commas);
    if (end == NULL || *end != '\0')
        return ATTN_ERR_SYNTAX;
    array.length = (size_t)(end - text);
    return tensor_scan(&array, dtype, &(struct tensor_rules){0}, "", arena, tensor, &at, &err);
}

static void answer(const char *type, const char *text)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_tensor tensor = {.rank = 0};
    char shape[96] = "";
    if (arena == NULL)
        exit(EXIT_FAILURE);
    const attn_status status = scan(text, attn_dtype_from_name(type), arena, &tensor);
    printf("%s", attn_status_name(status));
    if (status == ATTN_OK) {
        const size_t bytes = attn_tensor_count(&tensor) * attn_dtype_bytes(tensor.dtype);
        printf(" %s ", attn_shape_text(shape, sizeof shape, tensor.rank, tensor.shape));
        for (size_t i = 0; i < bytes; i++)
            printf("%02x", ((const unsigned char *)tensor.data)[i]);
    }
    printf("\n");
    attn_arena_destroy(arena);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
        line[length - 1] = '\0';
        char *text = strchr(line, ' ');
        if (text == NULL)
            return EXIT_FAILURE;
        *text++ = '\0';
        answer(line, text);
    }
    free(line);
    return EXIT_SUCCESS;
}
