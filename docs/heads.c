/*
 * heads.c: writes docs/heads.png, the picture in the README: both heads of its layer of three tokens.
 *
 *     make picture
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/multihead.h"
#include "codec/envelope.h"
#include "codec/picture.h"

static const char request[] =
    "{\"inputs\":  {\"query\": [[0.2, 0.7, 0.1], [0.9, 0.1, 0.3], [0.4, 0.5, 0.8]]},"
    " \"weights\": {\"query\": {\"weight\": [[1,0],[0,1],[1,1]]}, \"key\":    {\"weight\": [[0,1],[1,0],[1,1]]},"
    "               \"value\": {\"weight\": [[1,0],[0,1],[0,0]]}, \"output\": {\"weight\": [[1,2],[3,4]]}},"
    " \"masks\":   {\"causal\": true},"
    " \"options\": {\"num_heads\": 2, \"return\": [\"attention\", \"mask\"]}}";
static const char *const tokens[] = {"Ben", "okula", "gidiyorum"};

static attn_status draw(attn_arena *arena, struct chunks *out, attn_error *err)
{
    struct envelope envelope;
    attn_plan plan;
    attn_result result;
    struct font_set fonts;
    const attn_runtime runtime = attn_runtime_serial(NULL);
    if (!font_set_open(&fonts, "auto", err->message, sizeof err->message))
        return ATTN_ERR_FIELD;
    attn_status status = envelope_decode(request, strlen(request), ENVELOPE_LAYER, arena, &envelope, err);
    if (status == ATTN_OK)
        status = attn_plan_make(&envelope.request, &plan, err);
    if (status == ATTN_OK)
        status = attn_plan_run(&plan, &envelope.request, &runtime, arena, &result, err);
    const struct picture_axis axis = {.labels = tokens, .count = 3};
    const struct picture picture = {.weights = &result.step[ATTN_STEP_ATTENTION],
                                    .allowed = &result.step[ATTN_STEP_MASK],
                                    .queries = axis,
                                    .keys = axis,
                                    .options = picture_options_default()};
    if (status == ATTN_OK)
        status = picture_write_png(&picture, &fonts, &runtime, out, err);
    font_set_close(&fonts);
    return status;
}

int main(int argc, char **argv)
{
    attn_error error = {0};
    FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: heads FILE.png\n");
        return EXIT_FAILURE;
    }
    attn_blas_prepare();
    envelope_prepare();
    attn_arena *arena = attn_arena_create((size_t)64 << 20);
    struct chunks out = chunks_begin(arena);
    attn_status status = draw(arena, &out, &error);
    if (status != ATTN_OK)
        fprintf(stderr, "heads: %s\n", error.message);
    for (const struct chunk *chunk = out.first; status == ATTN_OK && chunk != NULL; chunk = chunk->next)
        fwrite(chunk->data, 1, chunk->length, file);
    attn_arena_destroy(arena);
    return fclose(file) == 0 && status == ATTN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
