/*
 * core.c: the library alone: three tokens attend to themselves and to those before them.
 *
 *     cc core.c $(pkg-config --cflags --libs attn) -o core && ./core
 *
 * After `make install PREFIX=$HOME/attn` pkg-config and the program have to be told where the library is:
 *
 *     export PKG_CONFIG_PATH=$HOME/attn/lib/pkgconfig
 *     cc core.c $(pkg-config --cflags --libs attn) -Wl,-rpath,$HOME/attn/lib -o core && ./core
 */
#include <attn/attention.h>
#include <stdio.h>

int main(void)
{
    const float q[] = {0.3f, 0.8f, 1.2f, 0.4f, 1.2f, 1.3f};
    const float k[] = {0.8f, 0.3f, 0.4f, 1.2f, 1.3f, 1.2f};
    const float v[] = {0.2f, 0.7f, 0.9f, 0.1f, 0.4f, 0.5f};
    float out[6], weights[9];
    const attn_attention_args args = {.batch = 1,
                                      .heads = 1,
                                      .q_len = 3,
                                      .kv_len = 3,
                                      .d_k = 2,
                                      .d_v = 2,
                                      .q = q,
                                      .k = k,
                                      .v = v,
                                      .causal = true,
                                      .out = out,
                                      .weights = weights};
    attn_error error;
    if (attn_attention(&args, NULL, NULL, &error) != ATTN_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (int i = 0; i < 3; i++)
        printf("weights %.4f %.4f %.4f   out %.4f %.4f\n", (double)weights[3 * i], (double)weights[3 * i + 1],
               (double)weights[3 * i + 2], (double)out[2 * i], (double)out[2 * i + 1]);
    return 0;
}
