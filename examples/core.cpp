// core.cpp: the library from C++: queries, keys and values are slices of one array, as a fused projection leaves them.
//
//     c++ -std=c++17 core.cpp $(pkg-config --cflags --libs attn) -o core && ./core
//
// core.c says how to link below a prefix of your own.
#include <attn/attn.h>

#include <cstdio>
#include <vector>

int main()
{
    constexpr size_t len = 3, d = 2, row = 3 * d;
    const std::vector<float> qkv = {
        0.3f, 0.8f, 0.8f, 0.3f, 0.2f, 0.7f, // the query, the key and the value of the first token
        1.2f, 0.4f, 0.4f, 1.2f, 0.9f, 0.1f, // of the second
        1.2f, 1.3f, 1.3f, 1.2f, 0.4f, 0.5f, // of the third
    };
    std::vector<float> out(len * d), weights(len * len);

    attn_attention_args args{};
    args.batch = args.heads = 1;
    args.q_len = args.kv_len = len;
    args.d_k = args.d_v = d;
    args.q = qkv.data();
    args.k = qkv.data() + d;
    args.v = qkv.data() + 2 * d;
    args.q_strides = args.k_strides = args.v_strides = {len * row, d, row};
    args.causal = true;
    args.out = out.data();
    args.weights = weights.data();

    attn_error error;
    if (attn_attention(&args, nullptr, nullptr, &error) != ATTN_OK) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < len; i++)
        std::printf("weights %.4f %.4f %.4f   out %.4f %.4f\n", weights[len * i], weights[len * i + 1],
                    weights[len * i + 2], out[d * i], out[d * i + 1]);
}
