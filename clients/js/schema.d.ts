/** Made by types.mjs from the server's /openapi.json: `make client-types`. */
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * Real
         * @description A number, rounded once and correctly to the compute type; beyond its range it is refused.
         */
        Real: number | ("NaN" | "Infinity" | "-Infinity" | "nan" | "inf" | "-inf");
        /**
         * Nested numbers
         * @description Nested arrays, row-major, as deep as the tensor has dimensions (1 to 4), all rows of one level of one length. The first row that disagrees is refused by its pointer.
         */
        NestedNumbers: components["schemas"]["Real"][] | components["schemas"]["Real"][][] | components["schemas"]["Real"][][][] | components["schemas"]["Real"][][][][];
        /**
         * Flag
         * @description true or 1: yes; false or 0: no.
         */
        Flag: boolean | (0 | 1);
        /**
         * Nested flags
         * @description Nested arrays of flags, as NestedNumbers.
         */
        NestedFlags: components["schemas"]["Flag"][] | components["schemas"]["Flag"][][] | components["schemas"]["Flag"][][][] | components["schemas"]["Flag"][][][][];
        /**
         * Integer
         * @description An integer of 64 bits.
         */
        Integer: number;
        /**
         * Nested integers
         * @description Nested arrays of integers, as NestedNumbers.
         */
        NestedIntegers: components["schemas"]["Integer"][] | components["schemas"]["Integer"][][] | components["schemas"]["Integer"][][][] | components["schemas"]["Integer"][][][][];
        /**
         * Shape
         * @description Length of each dimension, the slowest first; empty for a single number. A length may be 0.
         */
        Shape: number[];
        /**
         * Output shape
         * @description Sizes, outermost first. Only outputs of models have five.
         */
        OutputShape: number[];
        /**
         * Dtype
         * @description Type of the elements in base64. float16 is IEEE 754 half precision, bfloat16 the upper half of float32, bool one byte of 0 or 1.
         * @enum {string}
         */
        Dtype: "float32" | "float64" | "float16" | "bfloat16" | "int64" | "int32" | "uint8" | "bool";
        /**
         * Flat tensor
         * @description The shape, and the elements in one row-major list, as many as the shape asks for.
         */
        FlatTensor: {
            shape: components["schemas"]["Shape"];
            /** @description All elements, the last dimension fastest. */
            data: components["schemas"]["Real"][];
            /** @description Other programs write it here. It must be one of these words, and has no effect. */
            dtype?: components["schemas"]["Dtype"];
        };
        /**
         * Binary tensor
         * @description The shape and the bytes of the elements. Any type is converted to the compute type: floats are rounded to nearest even and refused when finite but beyond its range, integers must be exact, bool has the bytes 0 and 1.
         */
        BinaryTensor: {
            shape: components["schemas"]["Shape"];
            dtype: components["schemas"]["Dtype"];
            /** @description The elements, row-major and little-endian, in base64 of the standard alphabet with padding and without line breaks; as many bytes as the shape and type ask for. */
            base64: string;
        };
        /**
         * Tensor
         * @description A tensor of numbers in any of three forms: nested arrays, shape and flat data, shape and base64.
         */
        Tensor: components["schemas"]["NestedNumbers"] | components["schemas"]["FlatTensor"] | components["schemas"]["BinaryTensor"];
        /**
         * Score
         * @description A number of a score or a bias. null is "-Infinity", as answers write a hidden score.
         */
        Score: components["schemas"]["Real"] | null;
        /**
         * Nested scores
         * @description Nested arrays of scores, as NestedNumbers.
         */
        NestedScores: components["schemas"]["Score"][] | components["schemas"]["Score"][][] | components["schemas"]["Score"][][][] | components["schemas"]["Score"][][][][];
        /**
         * Flat score tensor
         * @description The shape, and the elements in one row-major list, as many as the shape asks for.
         */
        FlatScoreTensor: {
            shape: components["schemas"]["Shape"];
            /** @description Other programs write it here. It must be one of these words, and has no effect. */
            dtype?: components["schemas"]["Dtype"];
            /** @description All elements, the last dimension fastest. */
            data: components["schemas"]["Score"][];
        };
        /**
         * Score tensor
         * @description A tensor of scores or biases in any of three forms: nested arrays, shape and flat data, shape and base64.
         */
        ScoreTensor: components["schemas"]["NestedScores"] | components["schemas"]["FlatScoreTensor"] | components["schemas"]["BinaryTensor"];
        /**
         * Flat flag tensor
         * @description The shape, and the elements in one row-major list, as many as the shape asks for.
         */
        FlatFlagTensor: {
            shape: components["schemas"]["Shape"];
            /** @description All elements, the last dimension fastest. */
            data: components["schemas"]["Flag"][];
            /** @description Other programs write it here. It must be one of these words, and has no effect. */
            dtype?: components["schemas"]["Dtype"];
        };
        /**
         * Binary flag tensor
         * @description The shape and the bytes of the flags, each 0 or 1.
         */
        BinaryFlagTensor: {
            shape: components["schemas"]["Shape"];
            /**
             * @description Type of the elements; no float type.
             * @enum {string}
             */
            dtype: "int64" | "int32" | "uint8" | "bool";
            /** @description The elements, row-major and little-endian, in base64 of the standard alphabet with padding and without line breaks; as many bytes as the shape and type ask for. */
            base64: string;
        };
        /**
         * Flag tensor
         * @description A tensor of flags in any of three forms.
         */
        FlagTensor: components["schemas"]["NestedFlags"] | components["schemas"]["FlatFlagTensor"] | components["schemas"]["BinaryFlagTensor"];
        /**
         * Flat integer tensor
         * @description The shape, and the elements in one row-major list, as many as the shape asks for.
         */
        FlatIntegerTensor: {
            shape: components["schemas"]["Shape"];
            /** @description All elements, the last dimension fastest. */
            data: components["schemas"]["Integer"][];
            /** @description Other programs write it here. It must be one of these words, and has no effect. */
            dtype?: components["schemas"]["Dtype"];
        };
        /**
         * Binary integer tensor
         * @description The shape and the bytes of the integers.
         */
        BinaryIntegerTensor: {
            shape: components["schemas"]["Shape"];
            /**
             * @description Type of the elements; no float type.
             * @enum {string}
             */
            dtype: "int64" | "int32" | "uint8" | "bool";
            /** @description The elements, row-major and little-endian, in base64 of the standard alphabet with padding and without line breaks; as many bytes as the shape and type ask for. */
            base64: string;
        };
        /**
         * Integer tensor
         * @description A tensor of integers in any of three forms.
         */
        IntegerTensor: components["schemas"]["NestedIntegers"] | components["schemas"]["FlatIntegerTensor"] | components["schemas"]["BinaryIntegerTensor"];
        /**
         * Attention inputs
         * @description Queries, keys and values as they are, or a start in the middle: scores instead of queries and keys, or the weights themselves. Query, key and value have one rank: (len, dim), (batch, len, dim), where num_heads and kv_num_heads split dim into heads, or (batch, heads, len, dim). Query and key have the same batch and the same features per head; key and value the same batch, length and heads.
         */
        AttentionInputs: {
            /** @description (q_len, heads · d_k), (batch, q_len, heads · d_k) or (batch, heads, q_len, d_k). */
            query?: components["schemas"]["Tensor"];
            /** @description (…, kv_len, kv_heads · d_k) or (batch, kv_heads, kv_len, d_k). Default: query (self-attention). */
            key?: components["schemas"]["Tensor"];
            /** @description (…, kv_len, kv_heads · d_v) or (batch, kv_heads, kv_len, d_v). Default: key. Beside scores there is none by default; beside attention it is needed. Beside these two it may have any of the ranks, and output has its rank. */
            value?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_k), without batch for a query of rank 2: keys that stand before those of this request, normalised and rotated already, as present_key of the request before was. Together with past_value; kv_len of masks and maps counts them. */
            past_key?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_v): the values of past_key, as present_value was. */
            past_value?: components["schemas"]["Tensor"];
            /** @description (q_len, kv_len), (heads, q_len, kv_len) or (batch, heads, q_len, kv_len): stand for q·kᵀ. Scale is 1 by default; masks, biases, softcap, sinks and dropout follow as usual. A score of -Infinity hides its key. query, key, past_key, past_value, and the options rope, qk_norm, mechanism and cache are refused. Without value, the default of options.return is attention alone, and steps that need values are refused. */
            scores?: components["schemas"]["ScoreTensor"];
            /** @description Of the same shapes: the weights themselves, which are used as they are. Nothing is normalised, and a weight of 0 adds nothing, whatever its value is. value is needed. Masks, scale, softcap, alibi, relative_bias and sinks are refused, and so is what scores refuses. In options.return, the steps before attention, lse, lse_keys and sink are refused. */
            attention?: components["schemas"]["Tensor"];
        };
        /**
         * Layer inputs
         * @description Sequences of tokens: all three have rank 2 (len, features) or all rank 3 (batch, len, features), the same batch; each may have features of its own, as its weight takes them.
         */
        LayerInputs: {
            /** @description (q_len, d_query) or (batch, q_len, d_query). */
            query: components["schemas"]["Tensor"];
            /** @description (kv_len, d_key) or (batch, kv_len, d_key): for cross-attention the encoder's sequence. Default: query. */
            key?: components["schemas"]["Tensor"];
            /** @description (kv_len, d_value) or (batch, kv_len, d_value), as long as key. Default: key. */
            value?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_k), without batch for a query of rank 2: keys that stand before those of this request, normalised and rotated already, as present_key of the request before was. Together with past_value; kv_len of masks and maps counts them. */
            past_key?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_v): the values of past_key, as present_value was. */
            past_value?: components["schemas"]["Tensor"];
        };
        /**
         * Linear
         * @description A projection y = x · weight + bias. Shapes are those of layout in_out; out_in swaps the last two dimensions.
         */
        Linear: {
            /** @description Rank 2 (features in, features out), or rank 3 with the heads first as the papers write W_i: query, key, value (heads, features in, features per head); output (heads, d_v, d_out), with layout in_out only. */
            weight: components["schemas"]["Tensor"];
            /** @description As many numbers as features out: (features out), or of query, key and value also (heads, features per head). Default: none. */
            bias?: components["schemas"]["Tensor"];
        };
        /**
         * Fused linear
         * @description Query, key and value projections in one weight. Query, key and value inputs have the same features then, d_k = d_v, and members query, key, value beside it are refused.
         */
        FusedLinear: {
            /** @description Rank 2: (d_model, (heads + 2 · kv_heads) · d_k); with layout out_in swapped. */
            weight: components["schemas"]["Tensor"];
            /** @description ((heads + 2 · kv_heads) · d_k), in the order of the weight. Default: none. */
            bias?: components["schemas"]["Tensor"];
            /**
             * @description How the features out stand: stacked, all q, then all k, then all v; per_head q0 k0 v0 q1 k1 v1 …, for as many key heads as query heads; per_group, the query heads of a group, its key head, its value head, then the next group.
             * @default stacked
             * @enum {string}
             */
            order?: "stacked" | "per_head" | "per_group";
        };
        /**
         * Norm weights
         * @description Gain and shift of options.norm, which must be given too: y = normalised · weight + bias. Of rank 1, as many numbers as features: d_query with position pre, those of attention_output with position post.
         */
        NormWeights: {
            /** @description Gain. Default: 1. */
            weight?: components["schemas"]["Tensor"];
            /** @description Shift. Default: 0. */
            bias?: components["schemas"]["Tensor"];
        };
        /**
         * Feed forward weights
         * @description The feed-forward network of a block; the layout is that of the layer's weights. d_in is the number of features of attention_output; with options.feed_forward.parallel it is d_query.
         */
        FeedForwardWeights: {
            /** @description (d_in, d_ff), of rank 2. */
            up: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            /** @description (d_in, d_ff), of rank 2. Default: none; the network is then not gated. */
            gate?: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            /** @description (d_ff, d_out), of rank 2. d_out is the number of features of attention_output, to which the result is added; with residual false in options.feed_forward it is free. */
            down: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            /** @description Gain and shift of options.feed_forward.norm, of rank 1: d_in with position pre, d_out with position post. */
            norm?: components["schemas"]["Tensor"] | components["schemas"]["NormWeights"];
        };
        /**
         * Weights
         * @description Weights of the layer: query, key and value, or qkv. The number of heads comes from options, else from weights of rank 3, else it is 1. Features in are those of the inputs; features per head of value, and those of the output, are free.
         */
        Weights: {
            /** @description (d_query, heads · d_k) or (heads, d_query, d_k). */
            query?: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            /** @description (d_key, kv_heads · d_k) or (kv_heads, d_key, d_k). */
            key?: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            /** @description (d_value, kv_heads · d_v) or (kv_heads, d_value, d_v). */
            value?: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            /** @description All three projections in one weight; or that weight alone, in the order stacked. */
            qkv?: components["schemas"]["Tensor"] | components["schemas"]["FusedLinear"];
            /** @description (heads · d_v, d_attended) or (heads, d_v, d_attended): d_attended is the number of features of attention_output, and without feed_forward d_out. Default: none; the concatenated heads are the output then, and d_attended = heads · d_v. */
            output?: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            /** @description Gain and shift of options.norm; or the gain alone. */
            norm?: components["schemas"]["Tensor"] | components["schemas"]["NormWeights"];
            /**
             * @description in_out: y = x W, as papers and GPT-2 store weights; out_in: y = x Wᵀ, as torch.nn.Linear does. Holds for every weight.
             * @default in_out
             * @enum {string}
             */
            layout?: "in_out" | "out_in";
            /** @description Of queries. The gain and shift of qk_norm: (d_k) for every head, (heads, d_k) for each head its own, or (heads · d_k): the whole projection of a token is one row. */
            query_norm?: components["schemas"]["Tensor"] | components["schemas"]["NormWeights"];
            /** @description Of keys. The gain and shift of qk_norm: (d_k) for every head, (kv_heads, d_k) for each head its own, or (kv_heads · d_k): the whole projection of a token is one row. */
            key_norm?: components["schemas"]["Tensor"] | components["schemas"]["NormWeights"];
            /** @description (d_query, heads · d_v), (d_query, heads), or (heads, d_query, d_v or 1): the concatenated heads are multiplied by sigmoid(x W + b), where x is what the projections read (with a pre-norm the normalised query), feature by feature or head by head, before the output projection. Qiu et al., "Gated Attention for Large Language Models" (2025). */
            gate?: components["schemas"]["Tensor"] | components["schemas"]["Linear"];
            feed_forward?: components["schemas"]["FeedForwardWeights"];
        };
        /**
         * Causal mask
         * @description Query i sees key j when j ≤ i + offset.
         */
        CausalMask: {
            /**
             * @description Base that the offset is added to: bottom_right is kv_len − q_len, so that the last query sees the last key; top_left is 0. Default: bottom_right; but 0 when offset is given and align is not.
             * @enum {string}
             */
            align?: "bottom_right" | "top_left";
            /** @description Added to the base: one integer, or a tensor (batch) with one for each batch item, from −2⁴⁰ to 2⁴⁰. Default: 0. */
            offset?: number | components["schemas"]["IntegerTensor"];
        };
        /**
         * Documents
         * @description Ids of documents for queries and keys apart.
         */
        Documents: {
            /** @description (q_len) or (batch, q_len). */
            query: components["schemas"]["IntegerTensor"];
            /** @description (kv_len) or (batch, kv_len). */
            key: components["schemas"]["IntegerTensor"];
        };
        /**
         * Block matrix
         * @description Query i may attend to key j when attend[i div q_size][j div kv_size]; both are counted from 0.
         */
        BlockMatrix: {
            /** @description Tokens of a block, of queries and keys alike or as [q_size, kv_size]. */
            size: number | number[];
            /** @description (blocks of queries, blocks of keys), the lengths over the sizes rounded up; heads, and batch before them, may stand in front, each whole or 1. */
            attend: components["schemas"]["FlagTensor"];
        };
        /**
         * Strided blocks
         * @description Child et al., "Sparse Transformers" (2019): |P − J| ≤ window, or P − J a multiple of stride.
         */
        StridedBlocks: {
            /**
             * @description The name of the pattern. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            pattern: "strided";
            /**
             * @description Tokens of a block.
             * @default 1
             */
            size?: number;
            /** @description Every so many blocks one is seen. */
            stride: number;
            /** @description Blocks on either side of the query's own. Default: stride − 1. */
            window?: number;
        };
        /**
         * Longformer blocks
         * @description Beltagy et al., "Longformer" (2020): |P − J| ≤ window, or the query or the key among global_tokens.
         */
        LongformerBlocks: {
            /**
             * @description The name of the pattern. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            pattern: "longformer";
            /**
             * @description Tokens of a block.
             * @default 1
             */
            size?: number;
            /** @description Blocks on either side of the query's own.  */
            window: number;
            /** @description (n): positions, ascending, each below kv_len, that see and are seen by all. Default: none. */
            global_tokens?: components["schemas"]["IntegerTensor"];
        };
        /**
         * Big bird blocks
         * @description Zaheer et al., "Big Bird" (2020): a window, global blocks and tokens, and for each head and block of queries some keys' blocks drawn by seed.
         */
        BigBirdBlocks: {
            /**
             * @description The name of the pattern. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            pattern: "bigbird";
            /**
             * @description Tokens of a block.
             * @default 64
             */
            size?: number;
            /**
             * @description Blocks on either side of the query's own.
             * @default 1
             */
            window?: number;
            /** @description (n): positions, ascending, each below kv_len, that see and are seen by all. Default: none. */
            global_tokens?: components["schemas"]["IntegerTensor"];
            /**
             * @description The first and the last so many blocks of keys are global: all queries see them, and queries at their positions see all keys. A query behind the last key has no such block.
             * @default 1
             */
            global_blocks?: number;
            /**
             * @description Blocks drawn for each block of queries.
             * @default 3
             */
            random_blocks?: number;
            /**
             * @description The same seed draws the same blocks.
             * @default 0
             */
            seed?: number;
        };
        /**
         * Chunked blocks
         * @description Each block of tokens sees itself alone: P = J.
         */
        ChunkedBlocks: {
            /**
             * @description The name of the pattern. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            pattern: "chunked";
            /** @description Tokens of a block. */
            size: number;
        };
        /**
         * Prefix blocks
         * @description The first length keys are seen by all, the others causally.
         */
        PrefixBlocks: {
            /**
             * @description The name of the pattern. (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            pattern: "prefix";
            /** @description Keys of the prefix: one integer, or a tensor (batch); 0 to kv_len. */
            length: number | components["schemas"]["IntegerTensor"];
        };
        /**
         * Masks
         * @description What may attend to what. All masks that are given hold together, by AND.
         */
        Masks: {
            /**
             * @description true: {"align": "bottom_right"}. Query i sees key j when j ≤ i + offset.
             * @default false
             */
            causal?: boolean | components["schemas"]["CausalMask"];
            /** @description 1 or true: may attend. Broadcast from the right to (batch, heads, q_len, kv_len); or one flag for all. */
            attend?: components["schemas"]["Flag"] | components["schemas"]["FlagTensor"];
            /** @description Added to the scaled score, after softcap. Finite, or null or "-Infinity", which hide the key; NaN and Infinity are refused. Broadcast from the right to (batch, heads, q_len, kv_len); or one number for all. */
            bias?: number | components["schemas"]["ScoreTensor"];
            /** @description (batch, kv_len), or (kv_len) when batch is 1: 1 or true is a real token, the others are hidden from every query. */
            padding?: components["schemas"]["FlagTensor"];
            /** @description (batch) or (1): keys from that position on are hidden; 0 to kv_len. A number alone is a list of one. */
            key_lengths?: number | components["schemas"]["IntegerTensor"];
            /** @description (batch) or (1): queries from that position on see nothing; 0 to q_len. A number alone is a list of one. */
            query_lengths?: number | components["schemas"]["IntegerTensor"];
            /** @description [left, right]: query i sees keys from i + offset − left to i + offset + right, both included; null is open. offset is that of the causal mask, also when causal is not given: kv_len − q_len, unless causal or a profile sets another. Profiles torch_sdpa, torch_mha, jax and keras set 0, onnx sets past_len. */
            window?: (number | null)[];
            /** @description W keys up to and including the query's own position: window [W − 1, 0]. Beside window the narrower side counts. */
            sliding_window?: number;
            /** @description Query i sees key j when their ids are equal: (len), (batch, len), or {query, key} when the lengths differ. */
            documents?: components["schemas"]["IntegerTensor"] | components["schemas"]["Documents"];
            /** @description Block-sparse attention: a matrix of blocks, or a pattern by its name. The patterns count in positions like causal: with p = i + offset, P = p div size and J = j div size. */
            blocks?: components["schemas"]["BlockMatrix"] | components["schemas"]["BlockPattern"];
        };
        /**
         * Step
         * @description A step of the computation. Needed for it: projected weights.output; contribution weights.output and no weights.gate; residual options.residual; attention_output and feed_forward weights.feed_forward; sink options.sinks; gated weights.gate; dropped an active dropout on attention (training: true and p above 0); q_rotated and k_rotated, which are queries and keys after qk_norm and rope, one of these two options; softmax for scores, scaled, masked, lse, lse_keys, entropy.
         * @enum {string}
         */
        Step: "q" | "k" | "v" | "q_rotated" | "k_rotated" | "scores" | "scaled" | "masked" | "attention" | "dropped" | "lse" | "lse_keys" | "entropy" | "sink" | "context" | "concat" | "gated" | "projected" | "contribution" | "residual" | "attention_output" | "feed_forward" | "output" | "present_key" | "present_value" | "attention_mean" | "mask";
        /**
         * Selection
         * @description A list of indices and ranges, or one range: [0, 2] is 0 and 2; "0-2", {"from": 0, "to": 2} and [0, "1-2"] are 0, 1 and 2. Ranges include both ends. Negative indices count from the end: −1 is the last, of a batch of texts that of the longest; {"from": -3, "to": -1} are the last three. None twice, each below the dimension, kept in the order given; at most 4096 when not ascending, at most 1048576 in all. Before 0.3.0 a list of two ascending numbers was a range; diagnostics.hints names a list that meant something else then.
         */
        Selection: (number | components["schemas"]["RangeText"] | components["schemas"]["Range"] | number[])[] | components["schemas"]["RangeText"] | components["schemas"]["Range"];
        /**
         * Range text
         * @description A range with both ends, counted from 0.
         * @example 0-2
         */
        RangeText: string;
        /**
         * Range
         * @description A range with both ends.
         */
        Range: {
            /** @description The first index; from the end when it is negative. */
            from: number;
            /** @description The last index; from the end when it is negative. */
            to: number;
        };
        /**
         * Pool
         * @description Maps reduced for display. Row r of R stands for the rows from ⌊r·n/R⌋ to before ⌊(r+1)·n/R⌋ of the n that are selected, columns likewise; cells that the mask hides do not count, in scores and scaled neither, where they are not hidden without pool. A cell that stands for hidden cells alone is null in scores, scaled and masked, and 0 in attention. A cell of mask is true when any of its cells is, whatever op says. Give rows, cols or both.
         */
        Pool: {
            /** @description Rows of the reduced maps. Default: as many as there are. */
            rows?: number;
            /** @description Columns of the reduced maps. Default: as many as there are. */
            cols?: number;
            /**
             * @description What a cell is of those that it stands for.
             * @default max
             * @enum {string}
             */
            op?: "max" | "mean";
        };
        /**
         * Norm
         * @description Normalisation over the features of each token: layer is (x − mean) / √(variance + eps), with the variance divided by the number of features; rms is x / √(mean of x² + eps). Gain and shift are weights.norm.
         */
        Norm: {
            /**
             * @description LayerNorm or RMSNorm.
             * @default layer
             * @enum {string}
             */
            type?: "layer" | "rms";
            /**
             * @description post: on the output, after the residual. pre: on query before its projection, and on key and value where they default to it; a key or value that is given is left as it is, and the residual adds the query as it came.
             * @default post
             * @enum {string}
             */
            position?: "post" | "pre";
            /**
             * @description Added under the square root. options.profile has its own defaults: torch_sdpa and torch_mha take the machine epsilon of the compute type for rms.
             * @default 0.00001
             */
            eps?: number;
        };
        /**
         * Feed forward norm
         * @description The normalisation of a feed-forward network.
         */
        FeedForwardNorm: {
            /**
             * @description LayerNorm or RMSNorm. Default: that of options.norm, else layer.
             * @enum {string}
             */
            type?: "layer" | "rms";
            /** @description Added under the square root. Default: that of options.norm where the types agree, else 1e-5 or that of options.profile. */
            eps?: number;
        };
        /**
         * Feed forward
         * @description How weights.feed_forward makes a block of the layer. The network is ff(x) = act(x · up) · down, or with a gate (act(x · gate) ⊙ (x · up)) · down, biases included. With y = attention_output, the output is y + ff(norm(y)) for position pre, norm(y + ff(y)) for position post, and y + ff(x) for parallel, where x is norm(query), or without a norm of its own what the query projection reads.
         */
        FeedForward: {
            /**
             * @description relu: max(0, x). gelu: x Φ(x), Φ the normal distribution. gelu_tanh: x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2. quick_gelu: x sigmoid(1.702 x). silu: x sigmoid(x).
             * @enum {string}
             */
            activation: "relu" | "gelu" | "gelu_tanh" | "quick_gelu" | "silu";
            /**
             * @description Where its norm stands. Default: pre with parallel, else that of options.norm, else post. A parallel network takes pre alone.
             * @enum {string}
             */
            position?: "post" | "pre";
            /**
             * @description Whether the network reads the same input as the attention. It needs residual, and no post-norm in options.norm.
             * @default false
             */
            parallel?: boolean;
            /**
             * @description Whether y is added. Without it, weights.feed_forward.down may give another number of features than y has; the output then has that number.
             * @default true
             */
            residual?: boolean;
            /** @description Default: none without weights.feed_forward.norm. */
            norm?: boolean | ("layer" | "rms") | components["schemas"]["FeedForwardNorm"];
        };
        /**
         * Rope sides integers
         * @description Of queries and keys apart.
         */
        RopeSidesIntegers: {
            /** @description Of the queries. */
            query?: components["schemas"]["IntegerTensor"];
            /** @description Of the keys that come with the request. */
            key?: components["schemas"]["IntegerTensor"];
        };
        /**
         * Rope sides numbers
         * @description Of queries and keys apart.
         */
        RopeSidesNumbers: {
            /** @description Of the queries. */
            query?: components["schemas"]["Tensor"];
            /** @description Of the keys that come with the request. */
            key?: components["schemas"]["Tensor"];
        };
        /**
         * Rope scaling
         * @description Rotations for longer contexts, as rope_parameters of model configurations have them; a number that its type does not use is refused. Give rope_type or type.
         */
        RopeScaling: {
            /**
             * @description Which one.
             * @enum {string}
             */
            rope_type?: "default" | "linear" | "dynamic" | "yarn" | "longrope" | "llama3" | "proportional";
            /**
             * @description The older name of rope_type.
             * @enum {string}
             */
            type?: "default" | "linear" | "dynamic" | "yarn" | "longrope" | "llama3" | "proportional";
            /** @description As rope.theta, which it must equal when both are given. */
            rope_theta?: number;
            /** @description How much longer. null: not given. */
            factor?: number;
            /** @description Positions of the training. null: not given. */
            original_max_position_embeddings?: number;
            /** @description Positions now. null: not given. */
            max_position_embeddings?: number;
            /** @description yarn, longrope: factor of cosines and sines. null: not given. */
            attention_factor?: number;
            /** @description yarn: turns from which on a pair keeps its angle. Default: 32. null: not given. */
            beta_fast?: number;
            /** @description yarn: turns below which a pair is interpolated. Default: 1. null: not given. */
            beta_slow?: number;
            /** @description yarn: with mscale_all_dim, the attention factor as DeepSeek has it. null: not given. */
            mscale?: number;
            /** @description yarn: see mscale. null: not given. */
            mscale_all_dim?: number;
            /**
             * @description yarn: round the ends of the ramp outwards.
             * @default true
             */
            truncate?: boolean;
            /** @description longrope: (dim / 2), up to the original length. */
            short_factor?: components["schemas"]["Tensor"];
            /** @description longrope: (dim / 2), beyond it. */
            long_factor?: components["schemas"]["Tensor"];
            /** @description llama3. null: not given. */
            low_freq_factor?: number;
            /** @description llama3. null: not given. */
            high_freq_factor?: number;
            /** @description proportional: the share of pairs that turn; of other types the share of features that dim is. null: not given. */
            partial_rotary_factor?: number;
        };
        /**
         * Rope
         * @description Rotary position embeddings: Su et al., "RoFormer" (2021). Pairs of features are turned by position · theta^(−2i/dim).
         */
        Rope: {
            /**
             * @description Which features make a pair: half i and i + dim/2 (Llama); interleaved 2i and 2i + 1 (RoFormer, GPT-J); interleaved_to_half reads the one and writes the other (DeepSeek).
             * @default half
             * @enum {string}
             */
            layout?: "half" | "interleaved" | "interleaved_to_half";
            scaling?: components["schemas"]["RopeScaling"];
            /** @description Base of the angles. Default: 10000. */
            theta?: number;
            /** @description The first so many features of a head are turned, an even number. Default: all. */
            dim?: number;
            /** @description (len), (1, len) or (batch, len); for both sides or {query, key}. Default: query i stands at past_len + i, key j at j. Masks, windows, alibi and relative_bias count from the causal offset instead, which is kv_len − q_len by default: when the two differ, diagnostics.hints says so. */
            positions?: components["schemas"]["IntegerTensor"] | components["schemas"]["RopeSidesIntegers"];
            /** @description Instead of theta and scaling: (len, dim/2), (1, len, dim/2) or (batch, len, dim/2); with positions a table that they choose rows from. */
            cos?: components["schemas"]["Tensor"] | components["schemas"]["RopeSidesNumbers"];
            /** @description As cos, which must stand beside it. */
            sin?: components["schemas"]["Tensor"] | components["schemas"]["RopeSidesNumbers"];
        };
        /**
         * Qk norm
         * @description Normalisation of queries and keys, head by head, before rope; its gains are weights.query_norm and key_norm.
         */
        QkNorm: {
            /**
             * @description rms x / √(mean x² + eps); layer: centred, too; l2: x / max(|x|, eps).
             * @default rms
             * @enum {string}
             */
            type?: "rms" | "layer" | "l2";
            /** @description Default: 1e-5, or that of options.profile for the type; of l2 1e-12. */
            eps?: number;
        };
        /**
         * Softmax mechanism
         * @description Softmax of the scores.
         */
        SoftmaxMechanism: {
            /**
             * @description softmax (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            type: "softmax";
        };
        /**
         * Linear mechanism
         * @description φ(q)·φ(k) over its sum, with φ(x) = elu(x) + 1: Katharopoulos et al., "Transformers are RNNs" (2020). scale beside a denominator would cancel, and is refused.
         */
        LinearMechanism: {
            /**
             * @description linear (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            type: "linear";
            /**
             * @description φ; identity is φ(x) = x.
             * @default elu
             * @enum {string}
             */
            feature_map?: "elu" | "identity";
            /**
             * @description false: without the denominator, times scale.
             * @default true
             */
            normalize?: boolean;
            /**
             * @description Added to the denominator.
             * @default 0
             */
            eps?: number;
        };
        /**
         * Performer mechanism
         * @description Positive random features that approximate softmax (FAVOR+): Choromanski et al., "Rethinking Attention with Performers" (2021). φ_m(s) = (exp(P_m·s − |s|²/2 − c) + eps) / √features of s = √scale · x, where c is the largest P_m·s: of a query over its features; of keys over the features and all keys that the mask leaves to any query of any head of the key head's group. Without eps, c cancels.
         */
        PerformerMechanism: {
            /**
             * @description performer (enum property replaced by openapi-typescript)
             * @enum {string}
             */
            type: "performer";
            /** @description How many. Default: 256, or what the projection has. */
            features?: number;
            /**
             * @description Of the projection; the same seed, the same features.
             * @default 0
             */
            seed?: number;
            /** @description (features, d_k), instead of the one that the seed makes. */
            projection?: components["schemas"]["Tensor"];
            /**
             * @description Added to every feature.
             * @default 0.0001
             */
            eps?: number;
        };
        /**
         * Relative bias
         * @description Bias by distance from a table of buckets, as in Raffel et al., "T5" (2020).
         */
        RelativeBias: {
            /** @description (buckets, heads), finite: added to the scaled scores. */
            table: components["schemas"]["Tensor"];
            /**
             * @description Whether half of the buckets are for keys behind the query.
             * @default true
             */
            bidirectional?: boolean;
            /**
             * @description Distances from here on share the last bucket.
             * @default 128
             */
            max_distance?: number;
        };
        /**
         * Dropout
         * @description Numbers are dropped with probability p, the others multiplied by 1 / (1 − p); only with training: true, else it is echoed as inactive. Philox4x32-10, whose key is (low, high) of the seed and whose counter is (low, high of n div 4, stream, 0), words of 32 bits: element n is dropped when word n mod 4 is below p · 2³². Stream 0 is the attention weights, n = ((b · heads + h) · q_len + i) · kv_len + j; stream 1 the projected output, n = (b · q_len + i) · d_attended + feature, with the features of attention_output. The output attention is that before dropout, dropped that after it.
         */
        Dropout: {
            /** @description Probability; 0 drops nothing, 1 everything. */
            p: number;
            /**
             * @description The same seed gives the same bytes.
             * @default 0
             */
            seed?: number;
            /**
             * @description attention: the weights. residual, of layers only: the projected output (the concatenated heads without weights.output), before the residual is added. A feed-forward network has no dropout.
             * @default [
             *       "attention"
             *     ]
             */
            where?: ("attention" | "residual")[];
        };
        /**
         * Attention options
         * @description How to compute and what to send.
         */
        AttentionOptions: {
            /**
             * @description The defaults of another system: which corner causal masks are aligned to, the layout of weights, eps of norms. What the request says itself counts; effective.profile_defaults shows what was set.
             * @enum {string}
             */
            profile?: "torch_sdpa" | "torch_mha" | "onnx" | "jax" | "keras" | "flash" | "hf";
            /**
             * @description Type of every tensor but masks, and of the arithmetic. bfloat16 is float32 with q, k, v and the weights rounded to bfloat16 for q kᵀ and the product with v; for mechanism softmax, without gradients.
             * @default float32
             * @enum {string}
             */
            compute?: "float32" | "float64" | "bfloat16";
            /** @description Query heads. Of inputs of rank 2 and 3 it splits the features; of rank 4 it must agree with them. Default: 1, or what tensors of rank 4 and weights of rank 3 say. */
            num_heads?: number;
            /** @description Key and value heads, a divisor of num_heads: query head h uses key head h div (num_heads / kv_num_heads). 1 is multi-query, in between grouped-query attention. Default: num_heads, or what tensors of rank 4 and weights of rank 3 say. */
            kv_num_heads?: number;
            /** @description Factor of q kᵀ: any number that the compute type holds, 0 and negative ones too; "none" is 1. Default: 1/√d_k. */
            scale?: number | "none";
            /** @description c in c · tanh(s / c), applied to the scaled score; neither infinite nor 0 in the compute type. Default: none. */
            softcap?: number;
            /** @description Rotate queries and keys. Default: not; {} is {"layout": "half", "theta": 10000}. true is {}, a word is the layout. */
            rope?: boolean | ("half" | "interleaved" | "interleaved_to_half") | components["schemas"]["Rope"];
            /** @description Normalise queries and keys. Default: not; {} is {"type": "rms", "eps": 1e-5}. true is {}, a word is the type. */
            qk_norm?: boolean | ("rms" | "layer" | "l2") | components["schemas"]["QkNorm"];
            /** @description Drop numbers at random, while training. A number alone is p. */
            dropout?: number | components["schemas"]["Dropout"];
            /**
             * @description Whether dropout is active.
             * @default false
             */
            training?: boolean;
            /**
             * @description What turns scores into weights: a name, or an object with the name as its type and more.
             * @default softmax
             */
            mechanism?: ("softmax" | "linear" | "performer") | components["schemas"]["Mechanism"];
            /**
             * @description Steps to compute and send; twice is once. Asking for more changes no number. A name alone is a list of one.
             * @default [
             *       "output",
             *       "attention"
             *     ]
             */
            return?: components["schemas"]["Step"] | components["schemas"]["Step"][];
            /** @description Send only these heads of the maps: scores, scaled, masked, attention, dropped, mask. attention_mean stays the mean over all heads. Default: all. */
            heads?: components["schemas"]["Selection"];
            /** @description Send only these query rows of the maps and of attention_mean. Default: all. */
            queries?: components["schemas"]["Selection"];
            /** @description Send only these key columns of the maps and of attention_mean. Default: all. */
            keys?: components["schemas"]["Selection"];
            /**
             * @description Form of the outputs: nested arrays, flat {shape, data}, or base64 {shape, dtype, base64} in the compute type (bool for mask).
             * @default nested
             * @enum {string}
             */
            format?: "nested" | "flat" | "base64";
            /** @description Significant digits of the numbers in nested and flat outputs. Default: the fewest that read back exactly. */
            digits?: number;
            /** @description Reduce the maps for display, after heads, queries and keys have selected. Default: none. */
            pool?: components["schemas"]["Pool"];
            /** @description In place of the attention map the k largest weights of every row, falling, the lower key first among equals: {indices, weights}; positions in the whole sequence, −1 and weight 0 where no key is left. Not beside pool. */
            top_k?: number;
            /**
             * @description Type of maps as bytes (format base64, safetensors), rounded to nearest; uint8 is round(255 w), for weights alone. In text it is refused. Default: the compute type.
             * @enum {string}
             */
            dtype?: "float32" | "float64" | "float16" | "bfloat16" | "uint8";
            /**
             * @description The answer as a front-end reads it: the attention of one batch item (rows: of all). format, pool, top_k, dtype and other steps beside it are refused; circuitsvis needs as many queries as keys.
             * @enum {string}
             */
            view?: "bertviz" | "circuitsvis" | "inspectus" | "rows";
            /**
             * @description Press et al., "ALiBi" (2022): a bias of −slope · |key position − query position| of each head, whichever of the two is behind. true: slopes 2^(−8 (h + 1) / heads) when heads is a power of two, else as the paper interleaves them (effective.alibi has them); or slopes (heads), finite. Query i stands at i + offset, as for causal.
             * @default false
             */
            alibi?: boolean | components["schemas"]["Tensor"];
            /** @description Bias by distance from a table of buckets, beside alibi and masks.bias if they are given. Default: none. */
            relative_bias?: components["schemas"]["RelativeBias"];
            /** @description Keys and values that the server keeps between the steps of a sequence, in place of inputs.past_key and past_value: those of this request are appended. Begun when there is none of that name. A cache belongs to the API key that began it: other keys do not see it. A key holds at most half of --cache-max and of --cache-bytes; beyond that a step is answered 507. A cache that is idle for --cache-idle seconds is evicted; its name is then answered 410 until it is deleted. With length, a step counts only when so many positions are kept (409 otherwise, 410 when none are), so that one that was not answered can be tried again. Default: nothing is kept. */
            cache?: components["schemas"]["CacheName"] | components["schemas"]["CacheStep"];
            /** @description (heads), finite: a logit that joins the denominator of every row and nothing else, so that weights sum to 1 − sink. Default: none. */
            sinks?: components["schemas"]["Tensor"];
            /** @description (heads), finite: concat is each head's context times its factor. 0 takes a head out, whatever its context holds. Default: 1. */
            head_scale?: components["schemas"]["Tensor"];
        };
        /**
         * Layer options
         * @description How to compute and what to send.
         */
        LayerOptions: {
            /**
             * @description The defaults of another system: which corner causal masks are aligned to, the layout of weights, eps of norms. What the request says itself counts; effective.profile_defaults shows what was set.
             * @enum {string}
             */
            profile?: "torch_sdpa" | "torch_mha" | "onnx" | "jax" | "keras" | "flash" | "hf";
            /**
             * @description Type of every tensor but masks, and of the arithmetic. bfloat16 is float32 with q, k, v and the weights rounded to bfloat16 for q kᵀ and the product with v; for mechanism softmax, without gradients.
             * @default float32
             * @enum {string}
             */
            compute?: "float32" | "float64" | "bfloat16";
            /** @description Query heads. Of inputs of rank 2 and 3 it splits the features; of rank 4 it must agree with them. Default: 1, or what tensors of rank 4 and weights of rank 3 say. */
            num_heads?: number;
            /** @description Key and value heads, a divisor of num_heads: query head h uses key head h div (num_heads / kv_num_heads). 1 is multi-query, in between grouped-query attention. Default: num_heads, or what tensors of rank 4 and weights of rank 3 say. */
            kv_num_heads?: number;
            /** @description Factor of q kᵀ: any number that the compute type holds, 0 and negative ones too; "none" is 1. Default: 1/√d_k. */
            scale?: number | "none";
            /** @description c in c · tanh(s / c), applied to the scaled score; neither infinite nor 0 in the compute type. Default: none. */
            softcap?: number;
            /**
             * @description output = query + projected, for which projected must have d_query features; the query is added as it came, before any norm.
             * @default false
             */
            residual?: boolean;
            /** @description Rotate queries and keys. Default: not; {} is {"layout": "half", "theta": 10000}. true is {}, a word is the layout. */
            rope?: boolean | ("half" | "interleaved" | "interleaved_to_half") | components["schemas"]["Rope"];
            /** @description Normalise queries and keys. Default: not; {} is {"type": "rms", "eps": 1e-5}. true is {}, a word is the type. */
            qk_norm?: boolean | ("rms" | "layer" | "l2") | components["schemas"]["QkNorm"];
            /** @description Default: none; {} is {"type": "layer", "position": "post", "eps": 1e-5}. */
            norm?: boolean | ("layer" | "rms") | components["schemas"]["Norm"];
            /** @description Needed with weights.feed_forward. */
            feed_forward?: components["schemas"]["FeedForward"];
            /** @description Drop numbers at random, while training. A number alone is p. */
            dropout?: number | components["schemas"]["Dropout"];
            /**
             * @description Whether dropout is active.
             * @default false
             */
            training?: boolean;
            /**
             * @description What turns scores into weights: a name, or an object with the name as its type and more.
             * @default softmax
             */
            mechanism?: ("softmax" | "linear" | "performer") | components["schemas"]["Mechanism"];
            /**
             * @description Steps to compute and send; twice is once. Asking for more changes no number. A name alone is a list of one.
             * @default [
             *       "output",
             *       "attention"
             *     ]
             */
            return?: components["schemas"]["Step"] | components["schemas"]["Step"][];
            /** @description Send only these heads of the maps: scores, scaled, masked, attention, dropped, mask. attention_mean stays the mean over all heads. Default: all. */
            heads?: components["schemas"]["Selection"];
            /** @description Send only these query rows of the maps and of attention_mean. Default: all. */
            queries?: components["schemas"]["Selection"];
            /** @description Send only these key columns of the maps and of attention_mean. Default: all. */
            keys?: components["schemas"]["Selection"];
            /**
             * @description Form of the outputs: nested arrays, flat {shape, data}, or base64 {shape, dtype, base64} in the compute type (bool for mask).
             * @default nested
             * @enum {string}
             */
            format?: "nested" | "flat" | "base64";
            /** @description Significant digits of the numbers in nested and flat outputs. Default: the fewest that read back exactly. */
            digits?: number;
            /** @description Reduce the maps for display, after heads, queries and keys have selected. Default: none. */
            pool?: components["schemas"]["Pool"];
            /** @description In place of the attention map the k largest weights of every row, falling, the lower key first among equals: {indices, weights}; positions in the whole sequence, −1 and weight 0 where no key is left. Not beside pool. */
            top_k?: number;
            /**
             * @description Type of maps as bytes (format base64, safetensors), rounded to nearest; uint8 is round(255 w), for weights alone. In text it is refused. Default: the compute type.
             * @enum {string}
             */
            dtype?: "float32" | "float64" | "float16" | "bfloat16" | "uint8";
            /**
             * @description The answer as a front-end reads it: the attention of one batch item (rows: of all). format, pool, top_k, dtype and other steps beside it are refused; circuitsvis needs as many queries as keys.
             * @enum {string}
             */
            view?: "bertviz" | "circuitsvis" | "inspectus" | "rows";
            /**
             * @description Press et al., "ALiBi" (2022): a bias of −slope · |key position − query position| of each head, whichever of the two is behind. true: slopes 2^(−8 (h + 1) / heads) when heads is a power of two, else as the paper interleaves them (effective.alibi has them); or slopes (heads), finite. Query i stands at i + offset, as for causal.
             * @default false
             */
            alibi?: boolean | components["schemas"]["Tensor"];
            /** @description Bias by distance from a table of buckets, beside alibi and masks.bias if they are given. Default: none. */
            relative_bias?: components["schemas"]["RelativeBias"];
            /** @description Keys and values that the server keeps between the steps of a sequence, in place of inputs.past_key and past_value: those of this request are appended. Begun when there is none of that name. A cache belongs to the API key that began it: other keys do not see it. A key holds at most half of --cache-max and of --cache-bytes; beyond that a step is answered 507. A cache that is idle for --cache-idle seconds is evicted; its name is then answered 410 until it is deleted. With length, a step counts only when so many positions are kept (409 otherwise, 410 when none are), so that one that was not answered can be tried again. Default: nothing is kept. */
            cache?: components["schemas"]["CacheName"] | components["schemas"]["CacheStep"];
            /** @description (heads), finite: a logit that joins the denominator of every row and nothing else, so that weights sum to 1 − sink. Default: none. */
            sinks?: components["schemas"]["Tensor"];
            /** @description (heads), finite: concat is each head's context times its factor. 0 takes a head out, whatever its context holds. Default: 1. */
            head_scale?: components["schemas"]["Tensor"];
        };
        /**
         * Labels
         * @description A list with a label for each position, or a list of such lists, one for each batch item.
         */
        Labels: string[] | string[][];
        /**
         * Tokens
         * @description Labels of the positions: counted, and sent back in the answer. A label has at most 1024 bytes of UTF-8; all labels of a request have at most 1048576 together.
         */
        Tokens: {
            /** @description q_len labels, or batch lists of them. */
            query?: components["schemas"]["Labels"];
            /** @description kv_len labels, or batch lists of them. Default, when inputs.key is not given: those of query. Beside inputs.scores and inputs.attention only when q_len equals kv_len. */
            key?: components["schemas"]["Labels"];
        };
        /**
         * Attention request
         * @description Attention on queries, keys and values as given.
         */
        AttentionRequest: {
            options?: components["schemas"]["AttentionOptions"];
            inputs: components["schemas"]["AttentionInputs"];
            masks?: components["schemas"]["Masks"];
            /** @description Labels of the positions. A list alone is that of query. */
            tokens?: components["schemas"]["Labels"] | components["schemas"]["Tokens"];
        };
        /**
         * Layer request
         * @description A whole attention layer: MultiHead(Q, K, V) = Concat(head₁ … head_h) W_O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).
         */
        LayerRequest: {
            options?: components["schemas"]["LayerOptions"];
            inputs: components["schemas"]["LayerInputs"];
            weights: components["schemas"]["Weights"];
            masks?: components["schemas"]["Masks"];
            /** @description Labels of the positions. A list alone is that of query. */
            tokens?: components["schemas"]["Labels"] | components["schemas"]["Tokens"];
        };
        /**
         * Output number
         * @description A number, or the string for one that JSON cannot write.
         */
        OutputNumber: number | ("NaN" | "Infinity" | "-Infinity");
        /**
         * Output numbers
         * @description Nested arrays of numbers.
         */
        OutputNumbers: components["schemas"]["OutputNumber"][] | components["schemas"]["OutputNumber"][][] | components["schemas"]["OutputNumber"][][][] | components["schemas"]["OutputNumber"][][][][] | components["schemas"]["OutputNumber"][][][][][];
        /**
         * Output score
         * @description A score; null when its key is hidden.
         */
        OutputScore: (number | null) | ("NaN" | "Infinity");
        /**
         * Output scores
         * @description Nested arrays of scores.
         */
        OutputScores: components["schemas"]["OutputScore"][] | components["schemas"]["OutputScore"][][] | components["schemas"]["OutputScore"][][][] | components["schemas"]["OutputScore"][][][][] | components["schemas"]["OutputScore"][][][][][];
        /**
         * Output flags
         * @description Nested arrays of true and false.
         */
        OutputFlags: boolean[] | boolean[][] | boolean[][][] | boolean[][][][] | boolean[][][][][];
        /**
         * Output base64
         * @description options.format base64.
         */
        OutputBase64: {
            shape: components["schemas"]["OutputShape"];
            /**
             * @description The compute type, options.dtype of maps, bool of mask, int64 of positions.
             * @enum {string}
             */
            dtype: "float32" | "float64" | "float16" | "bfloat16" | "uint8" | "int64" | "bool";
            /** @description The elements, row-major and little-endian; a hidden score is −∞. */
            base64: string;
        };
        /**
         * Flat numbers out
         * @description options.format flat.
         */
        FlatNumbersOut: {
            shape: components["schemas"]["OutputShape"];
            /** @description All elements, the last dimension fastest. */
            data: components["schemas"]["OutputNumber"][];
        };
        /**
         * Numbers out
         * @description Numbers in the form that options.format asks for.
         */
        NumbersOut: components["schemas"]["OutputNumbers"] | components["schemas"]["FlatNumbersOut"] | components["schemas"]["OutputBase64"];
        /**
         * Flat scores out
         * @description options.format flat.
         */
        FlatScoresOut: {
            shape: components["schemas"]["OutputShape"];
            /** @description All elements, the last dimension fastest. */
            data: components["schemas"]["OutputScore"][];
        };
        /**
         * Scores out
         * @description Scores in the form that options.format asks for.
         */
        ScoresOut: components["schemas"]["OutputScores"] | components["schemas"]["FlatScoresOut"] | components["schemas"]["OutputBase64"];
        /**
         * Flat flags out
         * @description options.format flat.
         */
        FlatFlagsOut: {
            shape: components["schemas"]["OutputShape"];
            /** @description All elements, the last dimension fastest. */
            data: boolean[];
        };
        /**
         * Flags out
         * @description Flags in the form that options.format asks for.
         */
        FlagsOut: components["schemas"]["OutputFlags"] | components["schemas"]["FlatFlagsOut"] | components["schemas"]["OutputBase64"];
        /**
         * Top k out
         * @description options.top_k: the largest weights of every row.
         */
        TopKOut: {
            /** @description (batch, heads, q_len, k): positions of keys; −1 where none is left. */
            indices: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, k): falling. */
            weights: components["schemas"]["NumbersOut"];
        };
        /**
         * Outputs
         * @description The steps that were asked for. Maps, q, k, v, lse, entropy, context and attention_mean always have a batch dimension; concat, projected, residual and output have none when query has rank 2.
         */
        Outputs: {
            /** @description (batch, heads, q_len, d_k): queries per head, projected by a layer. */
            q?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_k): keys of this request, without those of past_key. */
            k?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_v): values of this request. */
            v?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, d_k): queries after qk_norm and rope. */
            q_rotated?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_k): keys likewise, behind those of past_key. */
            k_rotated?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, kv_len), or what options.heads, queries and keys leave of it: q kᵀ, unscaled. Not hidden where another query of the head may see the key; null for a key that no query of the head may see, and in a row without keys. */
            scores?: components["schemas"]["ScoresOut"];
            /** @description As scores, after scale and softcap. */
            scaled?: components["schemas"]["ScoresOut"];
            /** @description As scaled, after bias and mask: null wherever the mask hides. */
            masked?: components["schemas"]["ScoresOut"];
            /** @description (batch, heads, q_len, kv_len), or what options.heads, queries and keys leave of it: weights after softmax and before dropout; a row sums to 1 (less what a sink takes), or to 0 without keys. With options.top_k its largest weights. */
            attention?: components["schemas"]["NumbersOut"] | components["schemas"]["TopKOut"];
            /** @description The weights after dropout. */
            dropped?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): log of the sum of exp of the masked scores and the sink; −∞ without keys and sink. */
            lse?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): lse over the keys alone, without the sink. */
            lse_keys?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): −Σ p ln p, in nats, the sink included. */
            entropy?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): the weight of the sink. */
            sink?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, d_v): weights · v, after dropout. */
            context?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, heads · d_v), for a query of rank 2 (q_len, heads · d_v): the heads of context side by side. */
            concat?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, heads · d_v), for a query of rank 2 (q_len, heads · d_v): concat times the gate. */
            gated?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_attended), for a query of rank 2 (q_len, d_attended): concat · W_O + bias, before dropout. */
            projected?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, kv_len): the norm of what a key adds to projected, attention · |f(x_j)| with f(x) = (x W_V + b_V) W_O of the head, times |head_scale|. The bias of the output is left out. */
            contribution?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_attended), for a query of rank 2 (q_len, d_attended): query + projected, after dropout. */
            residual?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_attended), for a query of rank 2 (q_len, d_attended): what output is without weights.feed_forward. d_attended is d_out, unless options.feed_forward has residual false. */
            attention_output?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_out), for a query of rank 2 (q_len, d_out): the result of weights.feed_forward.down, before the residual. */
            feed_forward?: components["schemas"]["NumbersOut"];
            /** @description The result, with the rank of query: (batch, q_len, d_out); of rank 4 (batch, heads, q_len, d_v). */
            output?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_k): always of rank 4. It is past_key of the next request. */
            present_key?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_v): past_value of the next request. */
            present_value?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, kv_len): mean of attention over all heads; options.queries and keys select. */
            attention_mean?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, kv_len), or what options.heads, queries and keys leave of it: whether the query may attend to the key. */
            mask?: components["schemas"]["FlagsOut"];
        };
        /**
         * Shapes
         * @description Shape of each output.
         */
        Shapes: {
            q?: components["schemas"]["Shape"];
            k?: components["schemas"]["Shape"];
            v?: components["schemas"]["Shape"];
            q_rotated?: components["schemas"]["Shape"];
            k_rotated?: components["schemas"]["Shape"];
            scores?: components["schemas"]["Shape"];
            scaled?: components["schemas"]["Shape"];
            masked?: components["schemas"]["Shape"];
            attention?: components["schemas"]["Shape"];
            dropped?: components["schemas"]["Shape"];
            lse?: components["schemas"]["Shape"];
            lse_keys?: components["schemas"]["Shape"];
            entropy?: components["schemas"]["Shape"];
            sink?: components["schemas"]["Shape"];
            context?: components["schemas"]["Shape"];
            concat?: components["schemas"]["Shape"];
            gated?: components["schemas"]["Shape"];
            projected?: components["schemas"]["Shape"];
            contribution?: components["schemas"]["Shape"];
            residual?: components["schemas"]["Shape"];
            attention_output?: components["schemas"]["Shape"];
            feed_forward?: components["schemas"]["Shape"];
            output?: components["schemas"]["Shape"];
            present_key?: components["schemas"]["Shape"];
            present_value?: components["schemas"]["Shape"];
            attention_mean?: components["schemas"]["Shape"];
            mask?: components["schemas"]["Shape"];
        };
        /**
         * Effective
         * @description What was computed with, defaults included. Members of layers: layout, residual, norm. causal_offset is there with a causal mask, a window, a pattern of blocks or a bias by distance; alibi when slopes were made; qk_norm, rope, past_len, window, softcap, relative_bias, norm, dropout, selections, pool, top_k and dtype when they were given.
         */
        Effective: {
            /** @description softmax, or an object with the type and all that it was computed with. */
            mechanism: "softmax" | {
                /**
                 * @description As in options.
                 * @enum {string}
                 */
                type: "linear" | "performer";
                /** @description As in options. */
                eps: number;
                /** @description Of a performer. */
                features?: number;
                /** @description Of a performer. */
                seed?: number;
                /**
                 * @description Of linear.
                 * @enum {string}
                 */
                feature_map?: "elu" | "identity";
                /** @description Of linear. */
                normalize?: boolean;
            };
            /** @description The factor of q kᵀ; 1 by default for a request that starts at scores, and for one that starts at attention. */
            scale: number;
            /** @description Query heads. */
            num_heads: number;
            /** @description Key and value heads. */
            kv_num_heads: number;
            /** @description Features of one head of queries and keys; 0 for a request that starts at scores or attention. */
            d_k: number;
            /** @description Features of one head of values; 0 for scores without values. */
            d_v: number;
            /** @description Independent sequences. */
            batch: number;
            /** @description Positions in queries. */
            q_len: number;
            /** @description Positions in keys and values, those of a cache included. */
            kv_len: number;
            /**
             * @description As in options.
             * @enum {string}
             */
            compute: "float32" | "float64" | "bfloat16";
            /** @description Instruction set that computed; see also GET /version. */
            kernel: string;
            /** @description As in options, defaults filled in. */
            qk_norm?: {
                /**
                 * @description As in options.
                 * @enum {string}
                 */
                type: "rms" | "layer" | "l2";
                /** @description As in options. */
                eps: number;
            };
            /** @description As in options, defaults filled in; without theta and scaling when cos and sin were given. */
            rope?: {
                /**
                 * @description As in options.
                 * @enum {string}
                 */
                layout: "half" | "interleaved" | "interleaved_to_half";
                /** @description Features that were turned. */
                dim: number;
                /** @description As in options. */
                theta?: number;
                /**
                 * @description Its type.
                 * @enum {string}
                 */
                scaling?: "default" | "linear" | "dynamic" | "yarn" | "longrope" | "llama3" | "proportional";
            };
            /** @description How many keys came as past_key. */
            past_len?: number;
            /** @description Query i stands at key position i + offset; a list when the request gave one for each batch item. */
            causal_offset?: number | number[];
            /** @description [left, right], sliding_window included; null is open. */
            window?: (number | null)[];
            /** @description Slope of each head. */
            alibi?: number[];
            /** @description As in options; the table as its number of buckets. */
            relative_bias?: {
                /** @description Rows of the table. */
                num_buckets: number;
                /** @description As in options. */
                bidirectional: boolean;
                /** @description As in options. */
                max_distance: number;
            };
            /** @description As in options. */
            softcap?: number;
            /**
             * @description As in weights.
             * @enum {string}
             */
            layout?: "in_out" | "out_in";
            /** @description As in options. */
            residual?: boolean;
            /** @description As in options, defaults filled in. */
            norm?: {
                /**
                 * @description As in options.norm.
                 * @enum {string}
                 */
                type: "layer" | "rms";
                /**
                 * @description As in options.norm.
                 * @enum {string}
                 */
                position: "post" | "pre";
                /** @description As in options.norm. */
                eps: number;
            };
            /** @description As in options, defaults filled in; position and norm where there is a norm. */
            feed_forward?: {
                /**
                 * @description As in options.feed_forward.
                 * @enum {string}
                 */
                activation: "relu" | "gelu" | "gelu_tanh" | "quick_gelu" | "silu";
                /** @description Features between up and down. */
                d_ff: number;
                /** @description As in options.feed_forward. */
                parallel: boolean;
                /** @description As in options.feed_forward. */
                residual: boolean;
                /**
                 * @description As in options.feed_forward.
                 * @enum {string}
                 */
                position?: "post" | "pre";
                /** @description As in options.feed_forward. */
                norm?: {
                    /**
                     * @description As in options.feed_forward.norm.
                     * @enum {string}
                     */
                    type: "layer" | "rms";
                    /** @description As in options.feed_forward.norm. */
                    eps: number;
                };
            };
            /** @description As in options, defaults filled in. */
            dropout?: {
                /** @description As in options.dropout. */
                p: number;
                /** @description As in options.dropout. */
                seed: number;
                /** @description As in options.dropout. */
                where: ("attention" | "residual")[];
                /** @description Whether options.training was true. */
                active: boolean;
            };
            /** @description The heads that were selected, ranges written out. */
            heads?: number[];
            /** @description The queries that were selected, ranges written out. */
            queries?: number[];
            /** @description The keys that were selected, ranges written out. */
            keys?: number[];
            /** @description As in options, with the rows and columns that there are. */
            pool?: {
                /** @description Rows. */
                rows: number;
                /** @description Columns. */
                cols: number;
                /**
                 * @description As in options.
                 * @enum {string}
                 */
                op: "max" | "mean";
            };
            /** @description As in options. */
            top_k?: number;
            /** @description As in options. */
            dtype?: string;
            /**
             * @description As in options.
             * @enum {string}
             */
            profile?: "torch_sdpa" | "torch_mha" | "onnx" | "jax" | "keras" | "flash" | "hf";
            /** @description What the profile sets where the request says nothing. */
            profile_defaults?: {
                /**
                 * @description As in masks.causal; past is past_len.
                 * @enum {string}
                 */
                causal_align: "bottom_right" | "top_left" | "past";
                /**
                 * @description As in weights.
                 * @enum {string}
                 */
                layout: "in_out" | "out_in";
                /** @description By the type of the norm. */
                norm_eps: {
                    /** @description Of layer norms. */
                    layer: number;
                    /** @description Of RMS norms. */
                    rms: number;
                };
            };
        };
        /**
         * Diagnostics
         * @description What a user may want to know about the numbers.
         */
        Diagnostics: {
            /** @description [batch item, head, query] of the queries that no key was left to, the first 4096. */
            rows_without_keys: number[][];
            /** @description How many there are in all. */
            rows_without_keys_count: number;
            /** @description Largest finite |score| that the mask let through, after scale and softcap and before bias; 0 when there is none. */
            max_abs_score: number;
            /** @description Mean entropy of the rows with keys, in nats, one number a head; with `attention` (all keys of it) or `entropy` in `return`, and softmax. Rows that are no numbers are left out (`rows_not_finite_count`); "NaN" when a head has no others. */
            entropy_per_head?: components["schemas"]["OutputNumber"][];
            /** @description Mean weight of key 0 over the rows with keys, one number a head: near 1 is an attention sink. With `attention` in `return`, and softmax; so are the next two. Rows that are no numbers are left out (`rows_not_finite_count`); "NaN" when a head has no others. */
            first_key_share_per_head?: components["schemas"]["OutputNumber"][];
            /** @description Rows with several weights above 0 whose largest is over 0.99. */
            rows_on_one_key_count?: number;
            /** @description Rows in which a key that the mask allows has weight 0. */
            rows_underflowing_count?: number;
            /** @description Rows whose weights, or entropy, are NaN; both means leave them out. Missing without any, and when neither was asked for. */
            rows_not_finite_count?: number;
            /** @description With `options.softcap` c: how many scores the mask let through, and how many of them are at c tanh 3 or beyond, where the cap has flattened them. */
            softcap?: {
                /** @description How many there are. */
                scores: number;
                /** @description How many of them are flat. */
                saturated: number;
            };
            /** @description When `masks.bias` has finite numbers of -10000 or less (finfo.min, as other systems mask): they hide a key only while a larger score is in the row, and a row of nothing else attends to all of its keys. -Infinity hides. */
            bias_as_mask?: {
                /** @description How many such numbers there are. */
                count: number;
                /** @description The lowest of them. */
                lowest: number;
            };
            /** @description When the output or a row of attention has numbers that are not finite: how many the output has, and how many each input and weight has, by JSON pointer. */
            not_finite?: {
                [key: string]: number;
            };
            /** @description What is ambiguous in the request and was computed all the same, and finite numbers whose product is beyond the range of the compute type. Missing without any. */
            hints?: {
                /** @description JSON pointer into the request. */
                pointer: string;
                /** @description The reading that was taken, and what to send for the other. */
                message: string;
            }[];
        };
        /**
         * Answer
         * @description The steps that were asked for, and what they were computed with.
         */
        Answer: {
            outputs: components["schemas"]["Outputs"];
            shapes: components["schemas"]["Shapes"];
            effective: components["schemas"]["Effective"];
            diagnostics: components["schemas"]["Diagnostics"];
            /** @description The labels of the request, when it had any. */
            tokens?: components["schemas"]["Tokens"];
        };
        /**
         * Bertviz view
         * @description options.view bertviz: the parameters of BertViz's head and model views.
         */
        BertvizView: {
            /** @description One entry. */
            attention: {
                /** @description None. */
                name: null;
                /** @description (layer, head, query, key). */
                attn: components["schemas"]["OutputNumbers"];
                /** @description Tokens of the queries. */
                left_text: string[];
                /** @description Tokens of the keys. */
                right_text: string[];
            }[];
            /**
             * @description 0
             * @constant
             */
            default_filter: "0";
            /**
             * @description The layer shown first.
             * @constant
             */
            layer: 0;
            /** @description Places of the heads in attn. */
            heads: number[];
            /** @description The layer. */
            include_layers: number[];
            /** @description Numbers of the heads. */
            include_heads: number[];
            /** @description Heads there are. */
            total_heads: number;
            /**
             * @description dark
             * @constant
             */
            display_mode: "dark";
        };
        /**
         * Circuitsvis view
         * @description options.view circuitsvis: the parameters of CircuitsVis's AttentionPatterns.
         */
        CircuitsvisView: {
            /** @description Of queries and keys. */
            tokens: string[];
            /** @description (head, destination, source). */
            attention: components["schemas"]["OutputNumbers"];
        };
        /**
         * Inspectus view
         * @description options.view inspectus: the parameters of Inspectus's attention chart.
         */
        InspectusView: {
            /** @description A map for each head. */
            attention: {
                /** @description float32, little-endian. */
                values: string;
                /** @description Where it is from. */
                info: {
                    /**
                     * @description 0
                     * @constant
                     */
                    layer: 0;
                    /** @description Its number. */
                    head: number;
                };
                shape: components["schemas"]["Shape"];
            }[];
            /** @description Of the queries. */
            src_tokens: string[];
            /** @description Of the keys. */
            tgt_tokens: string[];
            /** @description Charts to show. */
            chart_types: string[];
            /** @description layer and head. */
            dimensions: {
                /** @description Its name. */
                name: string;
            }[];
        };
        /**
         * Rows view
         * @description options.view rows: one object for each cell, as Vega-Lite reads it.
         */
        RowsView: {
            /** @description Its batch. */
            batch: number;
            /** @description Its head. */
            head: number;
            /** @description Its query. */
            query: number;
            /** @description Its key. */
            key: number;
            /** @description Label of the query, when there are tokens. */
            query_token?: string;
            /** @description Label of the key, when there are tokens. */
            key_token?: string;
            weight: components["schemas"]["OutputNumber"];
            /** @description Whether the mask allows it. */
            allowed: boolean;
        }[];
        /**
         * Any answer
         * @description The answer, or with options.view what a front-end reads.
         */
        AnyAnswer: components["schemas"]["Answer"] | components["schemas"]["BertvizView"] | components["schemas"]["CircuitsvisView"] | components["schemas"]["InspectusView"] | components["schemas"]["RowsView"];
        /**
         * Gradient path
         * @description A tensor or number of the request, by its path; inputs also without "inputs."; or grad_scores, the gradient of the masked scores.
         * @enum {string}
         */
        GradientPath: "inputs.query" | "query" | "inputs.key" | "key" | "inputs.value" | "value" | "inputs.past_key" | "past_key" | "inputs.past_value" | "past_value" | "weights.query.weight" | "weights.query.bias" | "weights.key.weight" | "weights.key.bias" | "weights.value.weight" | "weights.value.bias" | "weights.qkv.weight" | "weights.qkv.bias" | "weights.output.weight" | "weights.output.bias" | "weights.norm.weight" | "weights.norm.bias" | "weights.query_norm.weight" | "weights.query_norm.bias" | "weights.key_norm.weight" | "weights.key_norm.bias" | "weights.gate.weight" | "weights.gate.bias" | "weights.feed_forward.up.weight" | "weights.feed_forward.up.bias" | "weights.feed_forward.gate.weight" | "weights.feed_forward.gate.bias" | "weights.feed_forward.down.weight" | "weights.feed_forward.down.bias" | "weights.feed_forward.norm.weight" | "weights.feed_forward.norm.bias" | "masks.bias" | "options.scale" | "options.alibi" | "options.relative_bias.table" | "options.sinks" | "options.head_scale" | "grad_scores";
        /**
         * Attention gradient options
         * @description How to compute and what to send.
         */
        AttentionGradientOptions: {
            /**
             * @description The defaults of another system: which corner causal masks are aligned to, the layout of weights, eps of norms. What the request says itself counts; effective.profile_defaults shows what was set.
             * @enum {string}
             */
            profile?: "torch_sdpa" | "torch_mha" | "onnx" | "jax" | "keras" | "flash" | "hf";
            /**
             * @description Type of every tensor but masks, and of the arithmetic. bfloat16 is float32 with q, k, v and the weights rounded to bfloat16 for q kᵀ and the product with v; for mechanism softmax, without gradients.
             * @default float32
             * @enum {string}
             */
            compute?: "float32" | "float64" | "bfloat16";
            /** @description Query heads. Of inputs of rank 2 and 3 it splits the features; of rank 4 it must agree with them. Default: 1, or what tensors of rank 4 and weights of rank 3 say. */
            num_heads?: number;
            /** @description Key and value heads, a divisor of num_heads: query head h uses key head h div (num_heads / kv_num_heads). 1 is multi-query, in between grouped-query attention. Default: num_heads, or what tensors of rank 4 and weights of rank 3 say. */
            kv_num_heads?: number;
            /** @description Factor of q kᵀ: any number that the compute type holds, 0 and negative ones too; "none" is 1. Default: 1/√d_k. */
            scale?: number | "none";
            /** @description c in c · tanh(s / c), applied to the scaled score; neither infinite nor 0 in the compute type. Default: none. */
            softcap?: number;
            /** @description Rotate queries and keys. Default: not; {} is {"layout": "half", "theta": 10000}. true is {}, a word is the layout. */
            rope?: boolean | ("half" | "interleaved" | "interleaved_to_half") | components["schemas"]["Rope"];
            /** @description Normalise queries and keys. Default: not; {} is {"type": "rms", "eps": 1e-5}. true is {}, a word is the type. */
            qk_norm?: boolean | ("rms" | "layer" | "l2") | components["schemas"]["QkNorm"];
            /** @description Drop numbers at random, while training. A number alone is p. */
            dropout?: number | components["schemas"]["Dropout"];
            /**
             * @description Whether dropout is active.
             * @default false
             */
            training?: boolean;
            /**
             * @description What turns scores into weights: a name, or an object with the name as its type and more.
             * @default softmax
             */
            mechanism?: ("softmax" | "linear" | "performer") | components["schemas"]["Mechanism"];
            /** @description Gradients to compute and send, and steps of the forward pass. Without any path all that was given is differentiated, the scale too when it was given. A name alone is a list of one. */
            return?: (components["schemas"]["GradientPath"] | components["schemas"]["Step"]) | (components["schemas"]["GradientPath"] | components["schemas"]["Step"])[];
            /** @description Send only these heads of the maps: scores, scaled, masked, attention, dropped, mask. attention_mean stays the mean over all heads. Default: all. */
            heads?: components["schemas"]["Selection"];
            /** @description Send only these query rows of the maps and of attention_mean. Default: all. */
            queries?: components["schemas"]["Selection"];
            /** @description Send only these key columns of the maps and of attention_mean. Default: all. */
            keys?: components["schemas"]["Selection"];
            /**
             * @description Form of the outputs: nested arrays, flat {shape, data}, or base64 {shape, dtype, base64} in the compute type (bool for mask).
             * @default nested
             * @enum {string}
             */
            format?: "nested" | "flat" | "base64";
            /** @description Significant digits of the numbers in nested and flat outputs. Default: the fewest that read back exactly. */
            digits?: number;
            /**
             * @description Press et al., "ALiBi" (2022): a bias of −slope · |key position − query position| of each head, whichever of the two is behind. true: slopes 2^(−8 (h + 1) / heads) when heads is a power of two, else as the paper interleaves them (effective.alibi has them); or slopes (heads), finite. Query i stands at i + offset, as for causal.
             * @default false
             */
            alibi?: boolean | components["schemas"]["Tensor"];
            /** @description Bias by distance from a table of buckets, beside alibi and masks.bias if they are given. Default: none. */
            relative_bias?: components["schemas"]["RelativeBias"];
            /** @description (heads), finite: a logit that joins the denominator of every row and nothing else, so that weights sum to 1 − sink. Default: none. */
            sinks?: components["schemas"]["Tensor"];
            /** @description (heads), finite: concat is each head's context times its factor. 0 takes a head out, whatever its context holds. Default: 1. */
            head_scale?: components["schemas"]["Tensor"];
        };
        /**
         * Attention gradient inputs
         * @description As without gradients, and the gradient with respect to the output.
         */
        AttentionGradientInputs: {
            /** @description (q_len, heads · d_k), (batch, q_len, heads · d_k) or (batch, heads, q_len, d_k). */
            query: components["schemas"]["Tensor"];
            /** @description (…, kv_len, kv_heads · d_k) or (batch, kv_heads, kv_len, d_k). Default: query (self-attention). */
            key?: components["schemas"]["Tensor"];
            /** @description (…, kv_len, kv_heads · d_v) or (batch, kv_heads, kv_len, d_v). Default: key. Beside scores there is none by default; beside attention it is needed. Beside these two it may have any of the ranks, and output has its rank. */
            value?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_k), without batch for a query of rank 2: keys that stand before those of this request, normalised and rotated already, as present_key of the request before was. Together with past_value; kv_len of masks and maps counts them. */
            past_key?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_v): the values of past_key, as present_value was. */
            past_value?: components["schemas"]["Tensor"];
            /** @description The gradient with respect to the output, in its shape. */
            grad_output: components["schemas"]["Tensor"];
        };
        /**
         * Attention gradient request
         * @description A request, and the gradient of its output.
         */
        AttentionGradientRequest: {
            options?: components["schemas"]["AttentionGradientOptions"];
            inputs: components["schemas"]["AttentionGradientInputs"];
            masks?: components["schemas"]["Masks"];
            /** @description Labels of the positions. A list alone is that of query. */
            tokens?: components["schemas"]["Labels"] | components["schemas"]["Tokens"];
        };
        /**
         * Layer gradient options
         * @description How to compute and what to send.
         */
        LayerGradientOptions: {
            /**
             * @description The defaults of another system: which corner causal masks are aligned to, the layout of weights, eps of norms. What the request says itself counts; effective.profile_defaults shows what was set.
             * @enum {string}
             */
            profile?: "torch_sdpa" | "torch_mha" | "onnx" | "jax" | "keras" | "flash" | "hf";
            /**
             * @description Type of every tensor but masks, and of the arithmetic. bfloat16 is float32 with q, k, v and the weights rounded to bfloat16 for q kᵀ and the product with v; for mechanism softmax, without gradients.
             * @default float32
             * @enum {string}
             */
            compute?: "float32" | "float64" | "bfloat16";
            /** @description Query heads. Of inputs of rank 2 and 3 it splits the features; of rank 4 it must agree with them. Default: 1, or what tensors of rank 4 and weights of rank 3 say. */
            num_heads?: number;
            /** @description Key and value heads, a divisor of num_heads: query head h uses key head h div (num_heads / kv_num_heads). 1 is multi-query, in between grouped-query attention. Default: num_heads, or what tensors of rank 4 and weights of rank 3 say. */
            kv_num_heads?: number;
            /** @description Factor of q kᵀ: any number that the compute type holds, 0 and negative ones too; "none" is 1. Default: 1/√d_k. */
            scale?: number | "none";
            /** @description c in c · tanh(s / c), applied to the scaled score; neither infinite nor 0 in the compute type. Default: none. */
            softcap?: number;
            /**
             * @description output = query + projected, for which projected must have d_query features; the query is added as it came, before any norm.
             * @default false
             */
            residual?: boolean;
            /** @description Rotate queries and keys. Default: not; {} is {"layout": "half", "theta": 10000}. true is {}, a word is the layout. */
            rope?: boolean | ("half" | "interleaved" | "interleaved_to_half") | components["schemas"]["Rope"];
            /** @description Normalise queries and keys. Default: not; {} is {"type": "rms", "eps": 1e-5}. true is {}, a word is the type. */
            qk_norm?: boolean | ("rms" | "layer" | "l2") | components["schemas"]["QkNorm"];
            /** @description Default: none; {} is {"type": "layer", "position": "post", "eps": 1e-5}. */
            norm?: boolean | ("layer" | "rms") | components["schemas"]["Norm"];
            /** @description Needed with weights.feed_forward. */
            feed_forward?: components["schemas"]["FeedForward"];
            /** @description Drop numbers at random, while training. A number alone is p. */
            dropout?: number | components["schemas"]["Dropout"];
            /**
             * @description Whether dropout is active.
             * @default false
             */
            training?: boolean;
            /**
             * @description What turns scores into weights: a name, or an object with the name as its type and more.
             * @default softmax
             */
            mechanism?: ("softmax" | "linear" | "performer") | components["schemas"]["Mechanism"];
            /** @description Gradients to compute and send, and steps of the forward pass. Without any path all that was given is differentiated, the scale too when it was given. A name alone is a list of one. */
            return?: (components["schemas"]["GradientPath"] | components["schemas"]["Step"]) | (components["schemas"]["GradientPath"] | components["schemas"]["Step"])[];
            /** @description Send only these heads of the maps: scores, scaled, masked, attention, dropped, mask. attention_mean stays the mean over all heads. Default: all. */
            heads?: components["schemas"]["Selection"];
            /** @description Send only these query rows of the maps and of attention_mean. Default: all. */
            queries?: components["schemas"]["Selection"];
            /** @description Send only these key columns of the maps and of attention_mean. Default: all. */
            keys?: components["schemas"]["Selection"];
            /**
             * @description Form of the outputs: nested arrays, flat {shape, data}, or base64 {shape, dtype, base64} in the compute type (bool for mask).
             * @default nested
             * @enum {string}
             */
            format?: "nested" | "flat" | "base64";
            /** @description Significant digits of the numbers in nested and flat outputs. Default: the fewest that read back exactly. */
            digits?: number;
            /**
             * @description Press et al., "ALiBi" (2022): a bias of −slope · |key position − query position| of each head, whichever of the two is behind. true: slopes 2^(−8 (h + 1) / heads) when heads is a power of two, else as the paper interleaves them (effective.alibi has them); or slopes (heads), finite. Query i stands at i + offset, as for causal.
             * @default false
             */
            alibi?: boolean | components["schemas"]["Tensor"];
            /** @description Bias by distance from a table of buckets, beside alibi and masks.bias if they are given. Default: none. */
            relative_bias?: components["schemas"]["RelativeBias"];
            /** @description (heads), finite: a logit that joins the denominator of every row and nothing else, so that weights sum to 1 − sink. Default: none. */
            sinks?: components["schemas"]["Tensor"];
            /** @description (heads), finite: concat is each head's context times its factor. 0 takes a head out, whatever its context holds. Default: 1. */
            head_scale?: components["schemas"]["Tensor"];
        };
        /**
         * Layer gradient inputs
         * @description As without gradients, and the gradient with respect to the output.
         */
        LayerGradientInputs: {
            /** @description (q_len, d_query) or (batch, q_len, d_query). */
            query: components["schemas"]["Tensor"];
            /** @description (kv_len, d_key) or (batch, kv_len, d_key): for cross-attention the encoder's sequence. Default: query. */
            key?: components["schemas"]["Tensor"];
            /** @description (kv_len, d_value) or (batch, kv_len, d_value), as long as key. Default: key. */
            value?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_k), without batch for a query of rank 2: keys that stand before those of this request, normalised and rotated already, as present_key of the request before was. Together with past_value; kv_len of masks and maps counts them. */
            past_key?: components["schemas"]["Tensor"];
            /** @description (batch, kv_heads, past_len, d_v): the values of past_key, as present_value was. */
            past_value?: components["schemas"]["Tensor"];
            /** @description The gradient with respect to the output, in its shape. */
            grad_output: components["schemas"]["Tensor"];
        };
        /**
         * Layer gradient request
         * @description A request, and the gradient of its output.
         */
        LayerGradientRequest: {
            options?: components["schemas"]["LayerGradientOptions"];
            inputs: components["schemas"]["LayerGradientInputs"];
            weights: components["schemas"]["Weights"];
            masks?: components["schemas"]["Masks"];
            /** @description Labels of the positions. A list alone is that of query. */
            tokens?: components["schemas"]["Labels"] | components["schemas"]["Tokens"];
        };
        /**
         * Gradients
         * @description The gradients, by the path of what they are of. What defaults to another input (key to query) has its gradient in that one.
         */
        Gradients: {
            /** @description Of options. */
            options?: {
                /** @description Of options.scale. */
                scale?: components["schemas"]["OutputNumber"] | components["schemas"]["NumbersOut"];
                /** @description Of options.alibi. */
                alibi?: components["schemas"]["NumbersOut"];
                /** @description Of options.relative_bias. */
                relative_bias?: {
                    /** @description Of options.relative_bias.table. */
                    table?: components["schemas"]["NumbersOut"];
                };
                /** @description Of options.sinks. */
                sinks?: components["schemas"]["NumbersOut"];
                /** @description Of options.head_scale. */
                head_scale?: components["schemas"]["NumbersOut"];
            };
            /** @description Of inputs. */
            inputs?: {
                /** @description Of inputs.query. */
                query?: components["schemas"]["NumbersOut"];
                /** @description Of inputs.key. */
                key?: components["schemas"]["NumbersOut"];
                /** @description Of inputs.value. */
                value?: components["schemas"]["NumbersOut"];
                /** @description Of inputs.past_key. */
                past_key?: components["schemas"]["NumbersOut"];
                /** @description Of inputs.past_value. */
                past_value?: components["schemas"]["NumbersOut"];
            };
            /** @description Of weights. */
            weights?: {
                /** @description Of weights.query. */
                query?: {
                    /** @description Of weights.query.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.query.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.key. */
                key?: {
                    /** @description Of weights.key.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.key.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.value. */
                value?: {
                    /** @description Of weights.value.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.value.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.qkv. */
                qkv?: {
                    /** @description Of weights.qkv.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.qkv.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.output. */
                output?: {
                    /** @description Of weights.output.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.output.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.norm. */
                norm?: {
                    /** @description Of weights.norm.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.norm.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.query_norm. */
                query_norm?: {
                    /** @description Of weights.query_norm.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.query_norm.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.key_norm. */
                key_norm?: {
                    /** @description Of weights.key_norm.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.key_norm.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.gate. */
                gate?: {
                    /** @description Of weights.gate.weight. */
                    weight?: components["schemas"]["NumbersOut"];
                    /** @description Of weights.gate.bias. */
                    bias?: components["schemas"]["NumbersOut"];
                };
                /** @description Of weights.feed_forward. */
                feed_forward?: {
                    /** @description Of weights.feed_forward.up. */
                    up?: {
                        /** @description Of weights.feed_forward.up.weight. */
                        weight?: components["schemas"]["NumbersOut"];
                        /** @description Of weights.feed_forward.up.bias. */
                        bias?: components["schemas"]["NumbersOut"];
                    };
                    /** @description Of weights.feed_forward.gate. */
                    gate?: {
                        /** @description Of weights.feed_forward.gate.weight. */
                        weight?: components["schemas"]["NumbersOut"];
                        /** @description Of weights.feed_forward.gate.bias. */
                        bias?: components["schemas"]["NumbersOut"];
                    };
                    /** @description Of weights.feed_forward.down. */
                    down?: {
                        /** @description Of weights.feed_forward.down.weight. */
                        weight?: components["schemas"]["NumbersOut"];
                        /** @description Of weights.feed_forward.down.bias. */
                        bias?: components["schemas"]["NumbersOut"];
                    };
                    /** @description Of weights.feed_forward.norm. */
                    norm?: {
                        /** @description Of weights.feed_forward.norm.weight. */
                        weight?: components["schemas"]["NumbersOut"];
                        /** @description Of weights.feed_forward.norm.bias. */
                        bias?: components["schemas"]["NumbersOut"];
                    };
                };
            };
            /** @description Of masks. */
            masks?: {
                /** @description Of masks.bias. */
                bias?: components["schemas"]["NumbersOut"];
            };
        };
        /**
         * Gradient shapes
         * @description Shape of each gradient.
         */
        GradientShapes: {
            /** @description Of inputs. */
            inputs?: {
                /** @description Of inputs.query. */
                query?: components["schemas"]["Shape"];
                /** @description Of inputs.key. */
                key?: components["schemas"]["Shape"];
                /** @description Of inputs.value. */
                value?: components["schemas"]["Shape"];
                /** @description Of inputs.past_key. */
                past_key?: components["schemas"]["Shape"];
                /** @description Of inputs.past_value. */
                past_value?: components["schemas"]["Shape"];
            };
            /** @description Of weights. */
            weights?: {
                /** @description Of weights.query. */
                query?: {
                    /** @description Of weights.query.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.query.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.key. */
                key?: {
                    /** @description Of weights.key.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.key.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.value. */
                value?: {
                    /** @description Of weights.value.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.value.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.qkv. */
                qkv?: {
                    /** @description Of weights.qkv.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.qkv.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.output. */
                output?: {
                    /** @description Of weights.output.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.output.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.norm. */
                norm?: {
                    /** @description Of weights.norm.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.norm.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.query_norm. */
                query_norm?: {
                    /** @description Of weights.query_norm.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.query_norm.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.key_norm. */
                key_norm?: {
                    /** @description Of weights.key_norm.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.key_norm.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.gate. */
                gate?: {
                    /** @description Of weights.gate.weight. */
                    weight?: components["schemas"]["Shape"];
                    /** @description Of weights.gate.bias. */
                    bias?: components["schemas"]["Shape"];
                };
                /** @description Of weights.feed_forward. */
                feed_forward?: {
                    /** @description Of weights.feed_forward.up. */
                    up?: {
                        /** @description Of weights.feed_forward.up.weight. */
                        weight?: components["schemas"]["Shape"];
                        /** @description Of weights.feed_forward.up.bias. */
                        bias?: components["schemas"]["Shape"];
                    };
                    /** @description Of weights.feed_forward.gate. */
                    gate?: {
                        /** @description Of weights.feed_forward.gate.weight. */
                        weight?: components["schemas"]["Shape"];
                        /** @description Of weights.feed_forward.gate.bias. */
                        bias?: components["schemas"]["Shape"];
                    };
                    /** @description Of weights.feed_forward.down. */
                    down?: {
                        /** @description Of weights.feed_forward.down.weight. */
                        weight?: components["schemas"]["Shape"];
                        /** @description Of weights.feed_forward.down.bias. */
                        bias?: components["schemas"]["Shape"];
                    };
                    /** @description Of weights.feed_forward.norm. */
                    norm?: {
                        /** @description Of weights.feed_forward.norm.weight. */
                        weight?: components["schemas"]["Shape"];
                        /** @description Of weights.feed_forward.norm.bias. */
                        bias?: components["schemas"]["Shape"];
                    };
                };
            };
            /** @description Of masks. */
            masks?: {
                /** @description Of masks.bias. */
                bias?: components["schemas"]["Shape"];
            };
            /** @description Of options. */
            options?: {
                /** @description Of options.scale. */
                scale?: components["schemas"]["Shape"];
                /** @description Of options.alibi. */
                alibi?: components["schemas"]["Shape"];
                /** @description Of options.relative_bias. */
                relative_bias?: {
                    /** @description Of options.relative_bias.table. */
                    table?: components["schemas"]["Shape"];
                };
                /** @description Of options.sinks. */
                sinks?: components["schemas"]["Shape"];
                /** @description Of options.head_scale. */
                head_scale?: components["schemas"]["Shape"];
            };
        };
        /**
         * Gradient answer
         * @description Gradients, and the steps of the forward pass that were asked for.
         */
        GradientAnswer: {
            outputs: components["schemas"]["GradientOutputs"];
            shapes: components["schemas"]["GradientAnswerShapes"];
            effective: components["schemas"]["Effective"];
            diagnostics: components["schemas"]["Diagnostics"];
            /** @description The labels of the request, when it had any. */
            tokens?: components["schemas"]["Tokens"];
            gradients: components["schemas"]["Gradients"];
        };
        /**
         * Problem
         * @description An error, as RFC 9457 has it, with the message in error too.
         */
        Problem: {
            /** @description A sentence for a person: what was expected and what came. */
            error: string;
            /**
             * @description The kind of problem, for programs.
             * @enum {string}
             */
            type: "/problems/bad-request" | "/problems/parameter" | "/problems/unauthorized" | "/problems/forbidden" | "/problems/foreign-origin" | "/problems/not-found" | "/problems/read-only" | "/problems/method-not-allowed" | "/problems/not-acceptable" | "/problems/conflict" | "/problems/gone" | "/problems/precondition-failed" | "/problems/body-too-large" | "/problems/unsupported-media-type" | "/problems/unsupported-encoding" | "/problems/expectation-failed" | "/problems/foreign-host" | "/problems/quota" | "/problems/header-too-large" | "/problems/deadline" | "/problems/busy" | "/problems/draining" | "/problems/store-failed" | "/problems/store-full" | "/problems/syntax" | "/problems/field" | "/problems/shape" | "/problems/value" | "/problems/too-large" | "/problems/no-memory" | "/problems/cancelled";
            /** @description The kind of problem, for people. */
            title: string;
            /** @description The HTTP status. */
            status: number;
            /** @description error, with line and column if there are any. */
            detail: string;
            /** @description JSON pointer of the member at fault, or ?name of a query parameter. */
            pointer?: string;
            /** @description What was expected there: a shape, a length, or words. */
            expected?: unknown;
            /** @description What came: a shape, a length, a value, or the name of its type. */
            received?: unknown;
            /** @description Line of the body, from 1. */
            line?: number;
            /** @description Column in bytes, from 1. */
            column?: number;
            /** @description As in X-Request-Id; missing only when the server has no memory left at all. */
            request_id?: string;
        };
        /**
         * Live
         * @description The process runs.
         */
        Live: {
            /**
             * @description Always true.
             * @constant
             */
            live: true;
        };
        /**
         * Ready
         * @description Whether to send requests here.
         */
        Ready: {
            /** @description false: send no new requests. */
            ready: boolean;
            /** @description Why not. */
            reasons?: ("starting" | "draining" | "queue full" | "memory nearly used up")[];
        };
        /**
         * Version
         * @description Facts about the build and the machine.
         */
        Version: {
            /**
             * @description attnd
             * @constant
             */
            name: "attnd";
            /** @description Version of the server. */
            version: string;
            /** @description Libraries in use. */
            libraries: {
                /** @description HTTP library and version. */
                http: string;
                /** @description JSON library and version. */
                json: string;
                /** @description Linear algebra library, version and the processor it chose. */
                blas: string;
            };
            /** @description Instruction set that attention is computed with. */
            kernel: string;
            /** @description Threads that receive and send, and threads that compute. */
            threads: {
                /** @description --io-threads */
                io: number;
                /** @description --compute-threads */
                compute: number;
            };
            /** @description Compiler that built the server. */
            compiler: string;
        };
        /**
         * Overview
         * @description Where to go from here.
         */
        Overview: {
            /**
             * @description attnd
             * @constant
             */
            name: "attnd";
            /** @description Version of the server. */
            version: string;
            /** @description Paths by what they are for. */
            links: {
                [key: string]: string;
            };
        };
        /**
         * Infer server
         * @description Who serves.
         */
        InferServer: {
            /**
             * @description attnd
             * @constant
             */
            name: "attnd";
            /** @description Version of the server. */
            version: string;
            /** @description Extensions of the protocol. */
            extensions: string[];
        };
        /**
         * Infer ready
         * @description Whether requests are welcome.
         */
        InferReady: {
            /** @description false: send no new requests. */
            ready: boolean;
            /**
             * @description Always true.
             * @constant
             */
            live: true;
        };
        /**
         * Infer models
         * @description The models.
         */
        InferModels: {
            /** @description Their names. */
            models: string[];
        };
        /**
         * Infer model ready
         * @description Whether the model takes requests.
         */
        InferModelReady: {
            /** @description Name of the model. */
            name: string;
            /**
             * @description Always true.
             * @constant
             */
            ready: true;
        };
        /**
         * Infer port
         * @description An input or output of a model.
         */
        InferPort: {
            /** @description Its name. */
            name: string;
            datatype: components["schemas"]["InferDatatype"];
            /** @description -1: any length; a kept layer tells its widths. Leading dimensions may be left out. */
            shape: number[];
            /**
             * @description Whether it may be left out.
             * @default false
             */
            optional?: boolean;
        };
        /**
         * Infer model
         * @description Metadata of a model.
         */
        InferModel: {
            /** @description Name of the model. */
            name: string;
            /** @description Versions there are. */
            versions: string[];
            /**
             * @description attnd
             * @constant
             */
            platform: "attnd";
            /** @description Tensors that it takes. */
            inputs: components["schemas"]["InferPort"][];
            /** @description Tensors that it gives when none are named. */
            outputs: components["schemas"]["InferPort"][];
        };
        /**
         * Infer config port
         * @description An input or output in a configuration.
         */
        InferConfigPort: {
            /** @description Its name. */
            name: string;
            /** @description TYPE_ and the datatype. */
            data_type: string;
            /** @description -1: any length; a kept layer tells its widths. Leading dimensions may be left out. */
            dims: number[];
            /** @description Whether it may be left out. */
            optional: boolean;
        };
        /**
         * Infer config
         * @description Configuration of a model, as Triton has it.
         */
        InferConfig: {
            /** @description Name of the model. */
            name: string;
            /**
             * @description attnd
             * @constant
             */
            platform: "attnd";
            /**
             * @description attnd
             * @constant
             */
            backend: "attnd";
            /**
             * @description 0: batches are a dimension of the tensors.
             * @constant
             */
            max_batch_size: 0;
            /** @description Tensors that it takes. */
            input: components["schemas"]["InferConfigPort"][];
            /** @description Tensors that it gives. */
            output: components["schemas"]["InferConfigPort"][];
        };
        /**
         * Infer index
         * @description The models of the repository.
         */
        InferIndex: {
            /** @description Name of the model. */
            name: string;
            /** @description Its version. Missing: it is not known without reading the file. */
            version?: string;
            /**
             * @description UNAVAILABLE: it is unloaded, cannot be used, or is still being read.
             * @enum {string}
             */
            state: "READY" | "UNAVAILABLE";
            /** @description Why it is unavailable, or why its newest file is not served; empty when all is well. */
            reason: string;
        }[];
        /**
         * Infer index request
         * @description Not looked at: everything that is here is ready.
         */
        InferIndexRequest: unknown;
        /**
         * Infer datatype
         * @description Type of the elements. FP16 is IEEE 754 half precision, BF16 the upper half of FP32, BOOL one byte of 0 or 1, BYTES a text: in binary form, its length in 4 bytes and its bytes. What the compute type cannot hold exactly, beyond rounding of floats, is refused.
         * @enum {string}
         */
        InferDatatype: "FP32" | "FP64" | "FP16" | "BF16" | "BOOL" | "INT8" | "INT16" | "INT32" | "INT64" | "UINT8" | "UINT16" | "UINT32" | "UINT64" | "BYTES";
        /**
         * Infer output name
         * @description A step, or the tokens of a whole model. A whole model has OUTPUT, ATTENTION and TOKENS alone.
         */
        InferOutputName: components["schemas"]["InferStep"] | "TOKENS";
        /**
         * Infer step
         * @description A step, by its name in capitals.
         * @enum {string}
         */
        InferStep: "Q" | "K" | "V" | "Q_ROTATED" | "K_ROTATED" | "SCORES" | "SCALED" | "MASKED" | "ATTENTION" | "DROPPED" | "LSE" | "LSE_KEYS" | "ENTROPY" | "SINK" | "CONTEXT" | "CONCAT" | "GATED" | "PROJECTED" | "CONTRIBUTION" | "RESIDUAL" | "ATTENTION_OUTPUT" | "FEED_FORWARD" | "OUTPUT" | "PRESENT_KEY" | "PRESENT_VALUE" | "ATTENTION_MEAN" | "MASK";
        /**
         * Infer element
         * @description A number, a flag, or a text. Of a request alone: null in BIAS is -Infinity, and NaN, Infinity and -Infinity may stand without quotes.
         */
        InferElement: components["schemas"]["Real"] | boolean | string | null;
        /**
         * Infer data
         * @description Elements, row-major: one flat list, or nested as the shape has it.
         */
        InferData: components["schemas"]["InferElement"][] | components["schemas"]["InferElement"][][] | components["schemas"]["InferElement"][][][] | components["schemas"]["InferElement"][][][][];
        /**
         * Infer input
         * @description A tensor: its numbers in data, or behind the JSON part with parameters.binary_data_size.
         */
        InferInput: {
            /**
             * @description inputs.query, key and value; masks.attend and bias. A whole model takes one of TEXT (BYTES, a text for each item) and IDS (INT64 or INT32, [len] or [batch,len]).
             * @enum {string}
             */
            name: "QUERY" | "KEY" | "VALUE" | "ATTEND" | "BIAS" | "TEXT" | "IDS";
            datatype: components["schemas"]["InferDatatype"];
            shape: components["schemas"]["Shape"];
            /** @description How the tensor comes. */
            parameters?: {
                /** @description Its bytes behind the JSON part, in the order of the inputs. */
                binary_data_size?: number;
                /** @description A hint of clients for servers that decode tensors by it. Passed over. */
                content_type?: unknown;
                /** @description Likewise passed over. */
                headers?: unknown;
            };
            data?: components["schemas"]["InferData"];
        };
        /**
         * Infer requested output
         * @description A step to compute and send.
         */
        InferRequestedOutput: {
            name: components["schemas"]["InferOutputName"];
            /** @description How to send it. */
            parameters?: {
                /** @description Behind the JSON part. Default: parameters.binary_data_output of the request. */
                binary_data?: boolean;
                /** @description A hint of clients for servers that decode tensors by it. Passed over. */
                content_type?: unknown;
                /** @description Likewise passed over. */
                headers?: unknown;
            };
        };
        /**
         * Infer parameters
         * @description Options, and the masks that are plain values. An object or a list is written as JSON in a string.
         */
        InferParameters: {
            /** @description options.layers of POST /v1/models/{model}/attention, for a whole model. A list, written as JSON in a string. */
            layers?: string;
            /** @description options.ablate of POST /v1/models/{model}/attention, for a whole model. A list, written as JSON in a string. */
            ablate?: string;
            /** @description options.predictions_k of POST /v1/models/{model}/attention, for a whole model. It has no effect here. */
            predictions_k?: number;
            /** @description options.truncate of POST /v1/models/{model}/attention, for a whole model. */
            truncate?: boolean;
            /** @description options.special_tokens of POST /v1/models/{model}/attention, for a whole model. */
            special_tokens?: boolean;
            /** @description As options.rope. An object or a list is written as JSON in a string. */
            rope?: string | Record<string, never>;
            /** @description As options.qk_norm. An object or a list is written as JSON in a string. */
            qk_norm?: string | Record<string, never>;
            /** @description As options.alibi. An object or a list is written as JSON in a string. */
            alibi?: string | boolean;
            /** @description As options.relative_bias. An object or a list is written as JSON in a string. */
            relative_bias?: string | Record<string, never>;
            /** @description As options.sinks. An object or a list is written as JSON in a string. */
            sinks?: string;
            /** @description As options.head_scale. An object or a list is written as JSON in a string. */
            head_scale?: string;
            /** @description Refused here: its keys and values belong to /v1. */
            cache?: string;
            /** @description As options.dropout. An object or a list is written as JSON in a string. */
            dropout?: string | Record<string, never>;
            /** @description As options.mechanism. An object or a list is written as JSON in a string. */
            mechanism?: string | Record<string, never>;
            /** @description As options.heads. An object or a list is written as JSON in a string. */
            heads?: string | unknown[] | Record<string, never>;
            /** @description As options.queries. An object or a list is written as JSON in a string. */
            queries?: string | unknown[] | Record<string, never>;
            /** @description As options.keys. An object or a list is written as JSON in a string. */
            keys?: string | unknown[] | Record<string, never>;
            /**
             * @description As options.format; the protocol's own form counts.
             * @default nested
             * @enum {string}
             */
            format?: "nested" | "flat" | "base64";
            /** @description As options.digits; the protocol sends the fewest that read back exactly. */
            digits?: number;
            /** @description As options.pool. An object or a list is written as JSON in a string. */
            pool?: string | Record<string, never>;
            /** @description As masks.causal. An object or a list is written as JSON in a string. */
            causal?: boolean | Record<string, never> | string;
            /** @description As masks.window. An object or a list is written as JSON in a string. */
            window?: string | unknown[];
            /**
             * @description Send the outputs behind the JSON part, unless one says otherwise.
             * @default false
             */
            binary_data_output?: boolean;
            /** @description Place in the queue: 1 goes first, 3 last; 0 is the default, as 2. */
            priority?: number;
            /** @description Microseconds from the end of the body, after which the work stops with 504; 0 is none. Prolongs no deadline of the server. */
            timeout?: number;
            /** @description A hint of clients for servers that decode tensors by it. Passed over. */
            content_type?: unknown;
            /** @description Likewise passed over. */
            headers?: unknown;
            /**
             * @description The defaults of another system: which corner causal masks are aligned to, the layout of weights, eps of norms. What the request says itself counts; effective.profile_defaults shows what was set.
             * @enum {string}
             */
            profile?: "torch_sdpa" | "torch_mha" | "onnx" | "jax" | "keras" | "flash" | "hf";
            /**
             * @description Type of every tensor but masks, and of the arithmetic. bfloat16 is float32 with q, k, v and the weights rounded to bfloat16 for q kᵀ and the product with v; for mechanism softmax, without gradients.
             * @default float32
             * @enum {string}
             */
            compute?: "float32" | "float64" | "bfloat16";
            /** @description Query heads. Of inputs of rank 2 and 3 it splits the features; of rank 4 it must agree with them. Default: 1, or what tensors of rank 4 and weights of rank 3 say. */
            num_heads?: number;
            /** @description Key and value heads, a divisor of num_heads: query head h uses key head h div (num_heads / kv_num_heads). 1 is multi-query, in between grouped-query attention. Default: num_heads, or what tensors of rank 4 and weights of rank 3 say. */
            kv_num_heads?: number;
            /** @description Factor of q kᵀ: any number that the compute type holds, 0 and negative ones too; "none" is 1. Default: 1/√d_k. */
            scale?: number | "none";
            /** @description c in c · tanh(s / c), applied to the scaled score; neither infinite nor 0 in the compute type. Default: none. */
            softcap?: number;
            /**
             * @description Whether dropout is active.
             * @default false
             */
            training?: boolean;
            /** @description In place of the attention map the k largest weights of every row, falling, the lower key first among equals: {indices, weights}; positions in the whole sequence, −1 and weight 0 where no key is left. Not beside pool. */
            top_k?: number;
            /**
             * @description Type of maps as bytes (format base64, safetensors), rounded to nearest; uint8 is round(255 w), for weights alone. In text it is refused. Default: the compute type.
             * @enum {string}
             */
            dtype?: "float32" | "float64" | "float16" | "bfloat16" | "uint8";
            /**
             * @description The answer as a front-end reads it: the attention of one batch item (rows: of all). format, pool, top_k, dtype and other steps beside it are refused; circuitsvis needs as many queries as keys.
             * @enum {string}
             */
            view?: "bertviz" | "circuitsvis" | "inspectus" | "rows";
            /** @description W keys up to and including the query's own position: window [W − 1, 0]. Beside window the narrower side counts. */
            sliding_window?: number;
        };
        /**
         * Infer request
         * @description A request of the Open Inference Protocol.
         */
        InferRequest: {
            /** @description Comes back in the answer. */
            id?: string;
            /** @description As in the path; another name is refused. The KServe SDK always sends it. */
            model_name?: string;
            /** @description The version of the path, or the one that is served under it: 1 or empty stand for the present one. Another one is refused. */
            model_version?: string;
            parameters?: components["schemas"]["InferParameters"];
            /** @description Tensors, each at most once; QUERY is needed, or of a whole model one of TEXT and IDS. */
            inputs: components["schemas"]["InferInput"][];
            /** @description What to compute and send, in this order. Default: OUTPUT and ATTENTION, and TOKENS of a whole model with a tokenizer. */
            outputs?: components["schemas"]["InferRequestedOutput"][];
        };
        /**
         * Infer output
         * @description A tensor.
         */
        InferOutput: {
            name: components["schemas"]["InferOutputName"];
            datatype: components["schemas"]["InferDatatype"];
            shape: components["schemas"]["OutputShape"];
            /** @description Where it stands. */
            parameters?: {
                /** @description Its bytes behind the JSON part, in the order of the outputs. */
                binary_data_size: number;
            };
            /** @description Elements, row-major; a list of lists when heads, queries or keys select. */
            data?: components["schemas"]["InferData"];
        };
        /**
         * Infer answer
         * @description An answer of the Open Inference Protocol.
         */
        InferAnswer: {
            /** @description As in the path. */
            model_name: string;
            /** @description Version of the model. */
            model_version: string;
            /** @description As in the request. */
            id?: string;
            /** @description In the order asked for. */
            outputs: components["schemas"]["InferOutput"][];
        };
        /**
         * Open api
         * @description An OpenAPI 3.1 document.
         */
        OpenApi: {
            /** @description Version of the format. */
            openapi: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * Kept layer
         * @description A layer that is kept.
         */
        KeptLayer: {
            /** @description Its name. */
            name: string;
            /** @description SHA-256 of its file, which is its version, and the ETag of the file. */
            digest: string;
            /** @description Length of its file. */
            bytes: number;
            /** @description Whether it is on a disk (--layers DIR), or in memory until the server ends. */
            durable: boolean;
            /** @description When it was put, UTC. */
            modified: string;
            /** @description Features of a token of the query. */
            d_model: number;
            /** @description Of a key. */
            d_key: number;
            /** @description Of a value. */
            d_value: number;
            /** @description Of the output. */
            d_out: number;
            /** @description Query heads. */
            num_heads: number;
            /** @description Key and value heads. */
            kv_num_heads: number;
            /** @description Features per head of query and key. */
            d_k: number;
            /** @description Of value. */
            d_v: number;
            /** @description Features between up and down of a feed-forward network. */
            d_ff?: number;
            /** @description Numbers in its tensors. */
            parameters: number;
            /** @description Of most of its weights, as they are kept. */
            dtype: components["schemas"]["Dtype"];
            /**
             * @description What it computes with by itself.
             * @enum {string}
             */
            compute: "float32" | "float64" | "bfloat16";
            /** @description Its tensors by their place in a request. */
            tensors: {
                name: string;
                dtype: components["schemas"]["Dtype"];
                shape: number[];
            }[];
            /** @description What it is besides tensors: layout, options, masks. */
            request: Record<string, never>;
        };
        /**
         * Kept layers
         * @description A page of the layers that are kept, by name.
         */
        KeptLayers: {
            /** @description The layers of this page. */
            layers: {
                /**
                 * @description ready; broken: its file cannot be used; unloaded: kept, and not served.
                 * @enum {string}
                 */
                state: "ready" | "broken" | "unloaded";
                /** @description Why it is broken. */
                reason?: string;
                /** @description Its name. */
                name: string;
                /** @description SHA-256 of its file, which is its version, and the ETag of the file. */
                digest?: string;
                /** @description Length of its file. */
                bytes?: number;
                /** @description Whether it is on a disk (--layers DIR), or in memory until the server ends. */
                durable?: boolean;
                /** @description When it was put, UTC. */
                modified?: string;
                /** @description Features of a token of the query. */
                d_model?: number;
                /** @description Of a key. */
                d_key?: number;
                /** @description Of a value. */
                d_value?: number;
                /** @description Of the output. */
                d_out?: number;
                /** @description Query heads. */
                num_heads?: number;
                /** @description Key and value heads. */
                kv_num_heads?: number;
                /** @description Features per head of query and key. */
                d_k?: number;
                /** @description Of value. */
                d_v?: number;
                /** @description Features between up and down of a feed-forward network. */
                d_ff?: number;
                /** @description Numbers in its tensors. */
                parameters?: number;
                /** @description Of most of its weights, as they are kept. */
                dtype?: components["schemas"]["Dtype"];
                /**
                 * @description What it computes with by itself.
                 * @enum {string}
                 */
                compute?: "float32" | "float64";
            }[];
            /** @description Of all layers. */
            count: number;
            /** @description Of all layers. */
            bytes: number;
            /** @description Whether it is on a disk (--layers DIR), or in memory until the server ends. */
            durable: boolean;
            /** @description after of the next page; null at the end. */
            next: string | null;
        };
        /**
         * Kept masks
         * @description Masks that fit sequences of any length.
         */
        KeptMasks: {
            /**
             * @description true: {"align": "bottom_right"}. Query i sees key j when j ≤ i + offset.
             * @default false
             */
            causal?: boolean | components["schemas"]["CausalMask"];
            /** @description [left, right]: query i sees keys from i + offset − left to i + offset + right, both included; null is open. offset is that of the causal mask, also when causal is not given: kv_len − q_len, unless causal or a profile sets another. Profiles torch_sdpa, torch_mha, jax and keras set 0, onnx sets past_len. */
            window?: (number | null)[];
            /** @description W keys up to and including the query's own position: window [W − 1, 0]. Beside window the narrower side counts. */
            sliding_window?: number;
            /** @description Block-sparse attention: a matrix of blocks, or a pattern by its name. The patterns count in positions like causal: with p = i + offset, P = p div size and J = j div size. */
            blocks?: components["schemas"]["BlockMatrix"] | components["schemas"]["BlockPattern"];
        };
        /**
         * Kept layer body
         * @description A layer request without inputs. options.rope may have no positions, cos and sin by token, because the layer takes requests of any length: send options.rope with the request.
         */
        KeptLayerBody: {
            options?: components["schemas"]["LayerOptions"];
            weights: components["schemas"]["Weights"];
            masks?: components["schemas"]["KeptMasks"];
        };
        /**
         * Kept layer request
         * @description What a kept layer is run on; options and masks take the place of the layer's own of the same name.
         */
        KeptLayerRequest: {
            options?: components["schemas"]["LayerOptions"];
            inputs: components["schemas"]["LayerInputs"];
            masks?: components["schemas"]["Masks"];
            /** @description Labels of the positions. A list alone is that of query. */
            tokens?: components["schemas"]["Labels"] | components["schemas"]["Tokens"];
        };
        /**
         * Kept layer gradient request
         * @description What a kept layer is differentiated on; options and masks take the place of the layer's own of the same name.
         */
        KeptLayerGradientRequest: {
            options?: components["schemas"]["LayerGradientOptions"];
            inputs: components["schemas"]["LayerGradientInputs"];
            masks?: components["schemas"]["Masks"];
            /** @description Labels of the positions. A list alone is that of query. */
            tokens?: components["schemas"]["Labels"] | components["schemas"]["Tokens"];
        };
        /**
         * Infer statistics
         * @description What models did since the server began.
         */
        InferStatistics: {
            /** @description One model each. */
            model_stats: {
                name: string;
                /** @description Empty when the model was not read yet. */
                version: string;
                /** @description Milliseconds since 1970; 0 for never. */
                last_inference: number;
                /** @description Batch items. */
                inference_count: number;
                /** @description Requests that succeeded. */
                execution_count: number;
                inference_stats: {
                    /** @description Requests that succeeded, from queue to answer. */
                    success: {
                        count: number;
                        ns: number;
                    };
                    /** @description Requests that failed. */
                    fail: {
                        count: number;
                        ns: number;
                    };
                    /** @description Waiting for a compute thread. */
                    queue: {
                        count: number;
                        ns: number;
                    };
                    /** @description Reading the body. */
                    compute_input: {
                        count: number;
                        ns: number;
                    };
                    /** @description Computing. */
                    compute_infer: {
                        count: number;
                        ns: number;
                    };
                    /** @description Writing the answer. */
                    compute_output: {
                        count: number;
                        ns: number;
                    };
                };
                batch_stats: Record<string, never>[];
            }[];
        };
        /**
         * Infer empty
         * @description Nothing more to say.
         */
        InferEmpty: Record<string, never>;
        /**
         * Infer load request
         * @description Load takes no parameters: a layer is loaded as it was kept.
         */
        InferLoadRequest: {
            /** @description None are taken; config and files of Triton's clients are refused, because PUT /v1/layers/{name} is what changes a layer. */
            parameters?: components["schemas"]["InferEmpty"];
        };
        /**
         * Cache name
         * @description Letters, digits, dots, underscores and hyphens, no dot first.
         */
        CacheName: string;
        /**
         * Cache
         * @description Keys and values that are kept, in numbers.
         */
        Cache: {
            name: components["schemas"]["CacheName"];
            /** @description Sequences. */
            batch: number;
            /** @description Heads of keys and values. */
            kv_num_heads: number;
            /** @description Positions. */
            length: number;
            /** @description Of keys and values. */
            bytes: number;
            /**
             * @description What they are computed in.
             * @enum {string}
             */
            dtype: "float32" | "float64";
            /** @description Seconds since the last step. */
            idle_s: number;
        };
        /**
         * Caches
         * @description At most 1000 of them, the one that was begun first at the front.
         */
        Caches: {
            /** @description Each in numbers. */
            caches: components["schemas"]["Cache"][];
        };
        /**
         * Model
         * @description A model. Members beside name, state and reason are there when the model can be used.
         */
        Model: {
            /** @description As in paths. */
            name: string;
            /**
             * @description Whether requests can use it. broken: its files cannot be used, or the model does not fit into the memory of models.
             * @enum {string}
             */
            state: "loading" | "ready" | "broken";
            /** @description Why it is broken; when it is ready, why its newest files are not used. A model that does not fit: "it needs more than 18 MB, has room for 9 MB; a larger --memory gives models more room". */
            reason?: string;
            /** @description model_type of config.json. */
            type?: string;
            /** @description The first of architectures in config.json, or empty. */
            architecture?: string;
            /**
             * @description What runs: decoders see no later tokens, image encoders take pixels.
             * @enum {string}
             */
            kind?: "encoder" | "decoder" | "encoder-decoder" | "image";
            /** @description Layers of the encoder, or of the only stack. */
            layers?: number;
            /** @description Of encoder-decoders alone. */
            decoder_layers?: number;
            /** @description Heads of a layer. */
            heads?: number;
            /** @description Of encoder-decoders alone. */
            decoder_heads?: number;
            /** @description Features of a token between layers. */
            d_model?: number;
            /** @description Rows of the word table; null for images. */
            vocabulary?: number | null;
            /** @description The most tokens of a sequence; null: no limit of its own. */
            longest?: number | null;
            /** @description Height and width of an image in pixels. */
            image?: number;
            /** @description Numbers in the tensors that the model uses. */
            parameters?: number;
            dtype?: components["schemas"]["Dtype"];
            /** @description Of its files together, and of its tokenizer in memory. */
            bytes?: number;
            /** @description Whether it takes text: it has a tokenizer that can be used. */
            tokenizer?: boolean;
            /** @description Why its tokenizer.json cannot be used. */
            tokenizer_reason?: string;
            /** @description What options.return can name, beside the steps of a layer. */
            returns?: string[];
        };
        /**
         * Models
         * @description In the order of their names.
         */
        Models: {
            /** @description All of them. */
            models: components["schemas"]["Model"][];
            /** @description How many there are. */
            count: number;
        };
        /**
         * Model tokens request
         * @description Texts to tokenize, or ids to write as text.
         */
        ModelTokensRequest: {
            options?: components["schemas"]["ModelTokensOptions"];
            inputs: components["schemas"]["ModelTokensInputs"];
        };
        /**
         * Model tokens
         * @description One row for each text or list of ids. Rows have their own lengths.
         */
        ModelTokens: {
            /** @description Ids of the tokens. */
            ids: number[][];
            /** @description The vocabulary's spelling; null when no token has the id. An unknown token is spelled as its tokenizer does: as [UNK], or as the text that it stands for. */
            tokens: (string | null)[][];
            /** @description What a reader should see. Of texts: the characters that the offsets cut out. Of ids: what the decoder makes of the token at its place, without the space that WordPiece sets between words. Bytes that are only a part of a character are written as \xE4. Added tokens keep their spelling, and a token that covers no character is shown as its id is. */
            shown: (string | null)[][];
            /** @description Numbers of tokens. */
            lengths: number[];
            /** @description Of texts: begin and end of each token in its text, in code points; [0, 0] for tokens that were added. */
            offsets?: number[][][];
            /** @description Of texts: whether the token was added, and does not stand in the text. */
            special?: boolean[][];
            /** @description Of texts: what the model's table of token types gets. */
            type_ids?: number[][];
            /** @description Of texts: 0 in the text, 1 in the pair, null for tokens that were added. */
            segments?: (number | null)[][];
            /** @description Of ids: the text that they stand for. */
            text?: string[];
            /** @description What is worth knowing about the texts. */
            diagnostics: {
                /** @description The texts with words that the tokenizer does not know, and those of which most words fall into pieces of one or two letters; at most 20 together. */
                hints?: {
                    /** @description Where it stands in the request. */
                    pointer: string;
                    /** @description A sentence. */
                    message: string;
                }[];
            };
        };
        /**
         * Infer unload request
         * @description What clients send with unload.
         */
        InferUnloadRequest: {
            /** @description What Triton knows. */
            parameters?: {
                /** @description Without effect: layers depend on no others. */
                unload_dependents?: boolean;
            };
        };
        /**
         * Model result
         * @description A result of the model, or a step of its layers. Steps are those of a layer request, as the model's own layers compute them.
         * @enum {string}
         */
        ModelResult: "hidden" | "output" | "logits" | "rollout" | "head_scores" | "predictions" | "logit_lens" | "q" | "k" | "v" | "q_rotated" | "k_rotated" | "scores" | "scaled" | "masked" | "attention" | "dropped" | "lse" | "lse_keys" | "entropy" | "sink" | "context" | "concat" | "gated" | "projected" | "contribution" | "residual" | "attention_output" | "feed_forward" | "present_key" | "present_value" | "attention_mean" | "mask";
        /**
         * Model inputs
         * @description One of text, ids, pixels and embeddings. Every list has one element for each item of the batch.
         */
        ModelInputs: {
            /** @description A text, or a list of texts, which is a batch and never a pair. U+0000 is refused. */
            text?: components["schemas"]["Texts"];
            /** @description The ids of the tokens, special tokens included: a list, or a list of such lists, which may differ in length. */
            ids?: components["schemas"]["Ids"];
            /** @description (batch, channels, height, width), or without the batch, of models of images: normalised as the model expects it. */
            pixels?: components["schemas"]["Tensor"];
            /** @description (batch, len, d_model) or (len, d_model): what the word table would give; positions and norms are still added. */
            embeddings?: components["schemas"]["Tensor"];
            /** @description A second segment for text: a text, or a list as long as that of text. */
            pair?: components["schemas"]["Texts"];
            /** @description Of encoder-decoders: the text of the decoder. It gets its special tokens and is shifted right. Without a target the encoder alone runs. */
            target?: components["schemas"]["Texts"];
            /** @description Of encoder-decoders: the ids of the decoder, as they are. Not beside target. */
            target_ids?: components["schemas"]["Ids"];
        };
        /**
         * Model options
         * @description What to run, and what to send of it.
         */
        ModelOptions: {
            /**
             * @description Type of every tensor but masks, and of the arithmetic. bfloat16 is float32 with q, k, v and the weights rounded to bfloat16 for q kᵀ and the product with v; for mechanism softmax, without gradients.
             * @default float32
             * @enum {string}
             */
            compute?: "float32" | "float64" | "bfloat16";
            /**
             * @description What the answer has. With an encoder and a decoder, a name such as attention asks for the result of each part that runs. A name alone is a list of one.
             * @default [
             *       "attention"
             *     ]
             */
            return?: components["schemas"]["ModelResult"] | components["schemas"]["ModelResult"][];
            /** @description Layers whose maps, steps and hidden states are sent. Default: all. */
            layers?: components["schemas"]["Selection"];
            /** @description Send only these heads of the maps. Default: all. */
            heads?: components["schemas"]["Selection"];
            /** @description Send only these rows of the maps, and only these tokens of predictions, logit_lens and logits. Default: all. */
            queries?: components["schemas"]["Selection"];
            /** @description Send only these columns of the maps. Default: all. */
            keys?: components["schemas"]["Selection"];
            /**
             * @description Form of the outputs: nested arrays, flat {shape, data}, or base64 {shape, dtype, base64} in the compute type (bool for mask).
             * @default nested
             * @enum {string}
             */
            format?: "nested" | "flat" | "base64";
            /** @description Significant digits of the numbers in nested and flat outputs. Default: the fewest that read back exactly. */
            digits?: number;
            /** @description Reduce the maps for display, after heads, queries and keys have selected. Default: none. */
            pool?: components["schemas"]["Pool"];
            /** @description In place of the attention map the k largest weights of every row, falling, the lower key first among equals: {indices, weights}; positions in the whole sequence, −1 and weight 0 where no key is left. Not beside pool. */
            top_k?: number;
            /**
             * @description Type of maps as bytes (format base64, safetensors), rounded to nearest; uint8 is round(255 w), for weights alone. In text it is refused. Default: the compute type.
             * @enum {string}
             */
            dtype?: "float32" | "float64" | "float16" | "bfloat16" | "uint8";
            /**
             * @description The maps of all chosen layers as a front-end reads them, of one batch item. return, format, pool, top_k and dtype beside it are refused; circuitsvis has one list of tokens, so no cross-attention.
             * @enum {string}
             */
            view?: "bertviz" | "circuitsvis" | "inspectus" | "rows";
            /** @description Heads that are switched off: pairs [layer, head]. Their context becomes 0 before w_o. Refused of models with an encoder and a decoder. */
            ablate?: number[][];
            /**
             * @description Words for each token in predictions and logit_lens.
             * @default 5
             */
            predictions_k?: number;
            /**
             * @description Shorten texts to the longest sequence of the model. Otherwise a longer text is refused.
             * @default false
             */
            truncate?: boolean;
            /**
             * @description Whether texts get the special tokens of the model.
             * @default true
             */
            special_tokens?: boolean;
        };
        /**
         * Model attention request
         * @description What a model runs on, and what it returns.
         */
        ModelAttentionRequest: {
            options?: components["schemas"]["ModelOptions"];
            inputs: components["schemas"]["ModelInputs"];
        };
        /**
         * Model words
         * @description The most probable words, the most probable first.
         */
        ModelWords: {
            /** @description Their ids. */
            ids: components["schemas"]["NumbersOut"];
            /** @description Their spelling in the vocabulary, in the nesting of ids; null for an id without a word. Of models with a tokenizer; in safetensors, JSON in __metadata__, named predictions.tokens or logit_lens.tokens. */
            tokens?: unknown[];
            /** @description What a reader should see of them, as they stand in the middle of a text (ModelTokens has the rules), in the nesting of ids. Of models with a tokenizer, in JSON. */
            shown?: unknown[];
            /** @description Of softmax over the whole vocabulary. */
            probabilities: components["schemas"]["NumbersOut"];
        };
        /**
         * Model head scores
         * @description What each head does, (layers, batch, heads). NaN: the sequence has no token that the score is about.
         */
        ModelHeadScores: {
            /** @description Mean weight of the token before. */
            previous_token: components["schemas"]["NumbersOut"];
            /** @description Mean weight of the first token. */
            first_token: components["schemas"]["NumbersOut"];
            /** @description Mean weight of other positions of the same token. */
            same_token: components["schemas"]["NumbersOut"];
            /** @description Mean weight of the tokens behind earlier positions of the same token. */
            induction: components["schemas"]["NumbersOut"];
            /** @description Mean entropy of the rows, in nats. */
            entropy: components["schemas"]["NumbersOut"];
        };
        /**
         * Model outputs
         * @description The results that were asked for. A step of the layers has its name, behind encoder_, decoder_ or cross_ where there are parts, and the axis of the layers in front. Rows of shorter batch items are filled with 0; lengths says what is real.
         */
        ModelOutputs: {
            q?: components["schemas"]["NumbersOut"];
            k?: components["schemas"]["NumbersOut"];
            v?: components["schemas"]["NumbersOut"];
            q_rotated?: components["schemas"]["NumbersOut"];
            k_rotated?: components["schemas"]["NumbersOut"];
            scores?: components["schemas"]["ScoresOut"];
            scaled?: components["schemas"]["ScoresOut"];
            masked?: components["schemas"]["ScoresOut"];
            /** @description (layers, batch, heads, queries, keys), or what the options leave of it. With top_k the largest weights of every row. */
            attention?: components["schemas"]["NumbersOut"] | components["schemas"]["TopKOut"];
            dropped?: components["schemas"]["NumbersOut"];
            lse?: components["schemas"]["NumbersOut"];
            lse_keys?: components["schemas"]["NumbersOut"];
            entropy?: components["schemas"]["NumbersOut"];
            sink?: components["schemas"]["NumbersOut"];
            context?: components["schemas"]["NumbersOut"];
            concat?: components["schemas"]["NumbersOut"];
            gated?: components["schemas"]["NumbersOut"];
            projected?: components["schemas"]["NumbersOut"];
            contribution?: components["schemas"]["NumbersOut"];
            residual?: components["schemas"]["NumbersOut"];
            attention_output?: components["schemas"]["NumbersOut"];
            feed_forward?: components["schemas"]["NumbersOut"];
            /** @description (batch, len, d_model): the output of the last layer after the final norm, under the head. */
            output?: components["schemas"]["NumbersOut"];
            present_key?: components["schemas"]["NumbersOut"];
            present_value?: components["schemas"]["NumbersOut"];
            attention_mean?: components["schemas"]["NumbersOut"];
            mask?: components["schemas"]["FlagsOut"];
            encoder_q?: components["schemas"]["NumbersOut"];
            encoder_k?: components["schemas"]["NumbersOut"];
            encoder_v?: components["schemas"]["NumbersOut"];
            encoder_q_rotated?: components["schemas"]["NumbersOut"];
            encoder_k_rotated?: components["schemas"]["NumbersOut"];
            encoder_scores?: components["schemas"]["ScoresOut"];
            encoder_scaled?: components["schemas"]["ScoresOut"];
            encoder_masked?: components["schemas"]["ScoresOut"];
            /** @description (layers, batch, heads, len, len) of the encoder. */
            encoder_attention?: components["schemas"]["NumbersOut"] | components["schemas"]["TopKOut"];
            encoder_dropped?: components["schemas"]["NumbersOut"];
            encoder_lse?: components["schemas"]["NumbersOut"];
            encoder_lse_keys?: components["schemas"]["NumbersOut"];
            encoder_entropy?: components["schemas"]["NumbersOut"];
            encoder_sink?: components["schemas"]["NumbersOut"];
            encoder_context?: components["schemas"]["NumbersOut"];
            encoder_concat?: components["schemas"]["NumbersOut"];
            encoder_gated?: components["schemas"]["NumbersOut"];
            encoder_projected?: components["schemas"]["NumbersOut"];
            encoder_contribution?: components["schemas"]["NumbersOut"];
            encoder_residual?: components["schemas"]["NumbersOut"];
            encoder_attention_output?: components["schemas"]["NumbersOut"];
            encoder_feed_forward?: components["schemas"]["NumbersOut"];
            encoder_output?: components["schemas"]["NumbersOut"];
            encoder_present_key?: components["schemas"]["NumbersOut"];
            encoder_present_value?: components["schemas"]["NumbersOut"];
            encoder_attention_mean?: components["schemas"]["NumbersOut"];
            encoder_mask?: components["schemas"]["FlagsOut"];
            decoder_q?: components["schemas"]["NumbersOut"];
            decoder_k?: components["schemas"]["NumbersOut"];
            decoder_v?: components["schemas"]["NumbersOut"];
            decoder_q_rotated?: components["schemas"]["NumbersOut"];
            decoder_k_rotated?: components["schemas"]["NumbersOut"];
            decoder_scores?: components["schemas"]["ScoresOut"];
            decoder_scaled?: components["schemas"]["ScoresOut"];
            decoder_masked?: components["schemas"]["ScoresOut"];
            /** @description (layers, batch, heads, target, target) of the decoder's own tokens. */
            decoder_attention?: components["schemas"]["NumbersOut"] | components["schemas"]["TopKOut"];
            decoder_dropped?: components["schemas"]["NumbersOut"];
            decoder_lse?: components["schemas"]["NumbersOut"];
            decoder_lse_keys?: components["schemas"]["NumbersOut"];
            decoder_entropy?: components["schemas"]["NumbersOut"];
            decoder_sink?: components["schemas"]["NumbersOut"];
            decoder_context?: components["schemas"]["NumbersOut"];
            decoder_concat?: components["schemas"]["NumbersOut"];
            decoder_gated?: components["schemas"]["NumbersOut"];
            decoder_projected?: components["schemas"]["NumbersOut"];
            decoder_contribution?: components["schemas"]["NumbersOut"];
            decoder_residual?: components["schemas"]["NumbersOut"];
            decoder_attention_output?: components["schemas"]["NumbersOut"];
            decoder_feed_forward?: components["schemas"]["NumbersOut"];
            decoder_output?: components["schemas"]["NumbersOut"];
            decoder_present_key?: components["schemas"]["NumbersOut"];
            decoder_present_value?: components["schemas"]["NumbersOut"];
            decoder_attention_mean?: components["schemas"]["NumbersOut"];
            decoder_mask?: components["schemas"]["FlagsOut"];
            cross_q?: components["schemas"]["NumbersOut"];
            cross_k?: components["schemas"]["NumbersOut"];
            cross_v?: components["schemas"]["NumbersOut"];
            cross_q_rotated?: components["schemas"]["NumbersOut"];
            cross_k_rotated?: components["schemas"]["NumbersOut"];
            cross_scores?: components["schemas"]["ScoresOut"];
            cross_scaled?: components["schemas"]["ScoresOut"];
            cross_masked?: components["schemas"]["ScoresOut"];
            /** @description (layers, batch, heads, target, len): the decoder looks at the encoder. */
            cross_attention?: components["schemas"]["NumbersOut"] | components["schemas"]["TopKOut"];
            cross_dropped?: components["schemas"]["NumbersOut"];
            cross_lse?: components["schemas"]["NumbersOut"];
            cross_lse_keys?: components["schemas"]["NumbersOut"];
            cross_entropy?: components["schemas"]["NumbersOut"];
            cross_sink?: components["schemas"]["NumbersOut"];
            cross_context?: components["schemas"]["NumbersOut"];
            cross_concat?: components["schemas"]["NumbersOut"];
            cross_gated?: components["schemas"]["NumbersOut"];
            cross_projected?: components["schemas"]["NumbersOut"];
            cross_contribution?: components["schemas"]["NumbersOut"];
            cross_residual?: components["schemas"]["NumbersOut"];
            cross_attention_output?: components["schemas"]["NumbersOut"];
            cross_feed_forward?: components["schemas"]["NumbersOut"];
            cross_output?: components["schemas"]["NumbersOut"];
            cross_present_key?: components["schemas"]["NumbersOut"];
            cross_present_value?: components["schemas"]["NumbersOut"];
            cross_attention_mean?: components["schemas"]["NumbersOut"];
            cross_mask?: components["schemas"]["FlagsOut"];
            /** @description (1 + layers, batch, len, d_model): first the embeddings, then the output of each chosen layer. */
            hidden?: components["schemas"]["NumbersOut"];
            /** @description (batch, len, vocabulary); (batch, classes) of a classifier. */
            logits?: components["schemas"]["NumbersOut"];
            /** @description (layers, batch, len, len): how much of each input token reaches each token of the layer's output. */
            rollout?: components["schemas"]["NumbersOut"];
            head_scores?: components["schemas"]["ModelHeadScores"];
            /** @description (batch, len, k): the words that the head of the model gives for each token. */
            predictions?: components["schemas"]["ModelWords"];
            /** @description (layers, batch, len, k): the words that the head would give for the output of each chosen layer. */
            logit_lens?: components["schemas"]["ModelWords"];
            /** @description As hidden, of the encoder. */
            encoder_hidden?: components["schemas"]["NumbersOut"];
            /** @description As rollout, of the encoder. */
            encoder_rollout?: components["schemas"]["NumbersOut"];
            /** @description As head_scores, of the encoder. */
            encoder_head_scores?: components["schemas"]["ModelHeadScores"];
            /** @description As hidden, of the decoder. */
            decoder_hidden?: components["schemas"]["NumbersOut"];
            /** @description As rollout, of the decoder. */
            decoder_rollout?: components["schemas"]["NumbersOut"];
            /** @description As head_scores, of the decoder. */
            decoder_head_scores?: components["schemas"]["ModelHeadScores"];
        };
        /**
         * Model item tokens
         * @description A row for each batch item.
         */
        ModelItemTokens: {
            /** @description Ids. */
            ids: number[][];
            /** @description The vocabulary's spelling; null when no token has the id. Of models with a tokenizer. */
            text?: (string | null)[][];
            /** @description What a reader should see: the characters of the text, or what the decoder makes of an id (ModelTokens has the rules). Pictures and views label with it. Of models with a tokenizer. */
            shown?: (string | null)[][];
            /** @description Of texts: begin and end of each token in its text, in code points; [0, 0] for tokens that were added. */
            offsets?: number[][][];
        };
        /**
         * Model answer
         * @description What was asked for, and what it was computed with.
         */
        ModelAnswer: {
            outputs: components["schemas"]["ModelOutputs"];
            /** @description The shape of each output. The tensors of an object have the same one. */
            shapes: {
                [key: string]: components["schemas"]["OutputShape"];
            };
            /** @description Which layers the first axis stands for. */
            layers: number[] | {
                /** @description Numbers of the layers. */
                encoder?: number[];
                /** @description Numbers of the layers. */
                decoder?: number[];
            };
            /** @description How many tokens, or patches, each batch item has. */
            lengths: number[] | {
                /** @description Tokens of each batch item. */
                encoder?: number[];
                /** @description Tokens of each batch item. */
                decoder?: number[];
            };
            /** @description The tokens, when the inputs are text or ids. */
            tokens?: components["schemas"]["ModelItemTokens"] | {
                encoder?: components["schemas"]["ModelItemTokens"];
                decoder?: components["schemas"]["ModelItemTokens"];
            };
            /** @description What ran. */
            effective: {
                /** @description Its name. */
                model: string;
                /** @description model_type of its config.json. */
                model_type: string;
                /** @description Layers of the encoder, or of the only stack. */
                layers: number;
                /**
                 * @description As in options.
                 * @enum {string}
                 */
                compute: "float32" | "float64" | "bfloat16";
                /** @description Instruction set that computed; see also GET /version. */
                kernel: string;
            };
            /** @description What is worth knowing about the texts. */
            diagnostics: {
                /** @description The texts with words that the tokenizer does not know, and those of which most words fall into pieces of one or two letters; at most 20 together. */
                hints?: {
                    /** @description Where it stands in the request. */
                    pointer: string;
                    /** @description A sentence. */
                    message: string;
                }[];
            };
        };
        /**
         * Model bertviz view
         * @description options.view bertviz of a model: the parameters of BertViz's head and model views.
         */
        ModelBertvizView: {
            /** @description One entry, or one for each part. */
            attention: {
                /**
                 * @description The part; null when there is one alone.
                 * @enum {null|string}
                 */
                name: null | "Encoder" | "Decoder" | "Cross";
                /** @description (layer, head, query, key). */
                attn: components["schemas"]["OutputNumbers"];
                /** @description Tokens of the queries. */
                left_text: string[];
                /** @description Tokens of the keys. */
                right_text: string[];
            }[];
            /**
             * @description 0
             * @constant
             */
            default_filter: "0";
            /** @description The layer shown first. */
            layer: number;
            /** @description Places of the heads in attn. */
            heads: number[];
            /** @description Numbers of the layers. */
            include_layers: number[];
            /** @description Numbers of the heads. */
            include_heads: number[];
            /** @description Heads there are. */
            total_heads: number;
            /**
             * @description dark
             * @constant
             */
            display_mode: "dark";
        };
        /**
         * Model circuitsvis view
         * @description options.view circuitsvis of a model: the parameters of AttentionPatterns for each layer.
         */
        ModelCircuitsvisView: {
            /** @description Its number. */
            layer: number;
            /** @description Of queries and keys. */
            tokens: string[];
            /** @description (head, destination, source). */
            attention: components["schemas"]["OutputNumbers"];
        }[];
        /**
         * Model inspectus chart
         * @description Of the maps of all layers of a part.
         */
        ModelInspectusChart: {
            /** @description A map for each head. */
            attention: {
                /** @description float32, little-endian. */
                values: string;
                /** @description Where it is from. */
                info: {
                    /** @description Its layer. */
                    layer: number;
                    /** @description Its number. */
                    head: number;
                };
                shape: components["schemas"]["Shape"];
            }[];
            /** @description Of the queries. */
            src_tokens: string[];
            /** @description Of the keys. */
            tgt_tokens: string[];
            /** @description Charts to show. */
            chart_types: string[];
            /** @description layer and head. */
            dimensions: {
                /** @description Its name. */
                name: string;
            }[];
        };
        /**
         * Model inspectus view
         * @description options.view inspectus of a model: the parameters of Inspectus's attention chart, or of a chart for each part.
         */
        ModelInspectusView: components["schemas"]["ModelInspectusChart"] | {
            encoder?: components["schemas"]["ModelInspectusChart"];
            decoder?: components["schemas"]["ModelInspectusChart"];
            cross?: components["schemas"]["ModelInspectusChart"];
        };
        /**
         * Model rows view
         * @description options.view rows of a model: one object for each cell.
         */
        ModelRowsView: {
            /**
             * @description Of an encoder and a decoder: which attention.
             * @enum {string}
             */
            part?: "encoder" | "decoder" | "cross";
            /** @description Its layer. */
            layer: number;
            /**
             * @description 0.
             * @constant
             */
            batch: 0;
            /** @description Its head. */
            head: number;
            /** @description Its query. */
            query: number;
            /** @description Its key. */
            key: number;
            /** @description Label of the query, when there are tokens. */
            query_token?: string;
            /** @description Label of the key, when there are tokens. */
            key_token?: string;
            weight: components["schemas"]["OutputNumber"];
            /** @description Whether the mask allows it. */
            allowed: boolean;
        }[];
        /**
         * Any model answer
         * @description The answer, or with options.view what a front-end reads.
         */
        AnyModelAnswer: components["schemas"]["ModelAnswer"] | components["schemas"]["ModelBertvizView"] | components["schemas"]["ModelCircuitsvisView"] | components["schemas"]["ModelInspectusView"] | components["schemas"]["ModelRowsView"];
        /**
         * Texts
         * @description A text, or a list of texts.
         */
        Texts: string | string[];
        /**
         * Ids
         * @description A list of ids, or a list of such lists.
         */
        Ids: number[] | number[][];
        /**
         * Cache step
         * @description A cache, and how many positions it must have.
         */
        CacheStep: {
            name: components["schemas"]["CacheName"];
            /** @description How many positions are kept already. */
            length?: number;
        };
        /**
         * Model tokens inputs
         * @description One of text and ids. U+0000 in a text is refused.
         */
        ModelTokensInputs: {
            /** @description A text, or a list of texts, which is a batch and never a pair. */
            text?: components["schemas"]["Texts"];
            /** @description A list of ids, or a list of such lists. */
            ids?: components["schemas"]["Ids"];
            /** @description A second segment for text, or a list as long as that of text. */
            pair?: components["schemas"]["Texts"];
        };
        /**
         * Model tokens options
         * @description How to tokenize.
         */
        ModelTokensOptions: {
            /**
             * @description Shorten to the longest sequence of the model.
             * @default false
             */
            truncate?: boolean;
            /**
             * @description Whether texts get the special tokens of the model. Of ids: whether special tokens stay in the text.
             * @default true
             */
            special_tokens?: boolean;
        };
        /**
         * Mechanism
         * @description A mechanism, by its type.
         */
        Mechanism: components["schemas"]["SoftmaxMechanism"] | components["schemas"]["LinearMechanism"] | components["schemas"]["PerformerMechanism"];
        /**
         * Block pattern
         * @description Blocks by the name of a pattern.
         */
        BlockPattern: components["schemas"]["StridedBlocks"] | components["schemas"]["LongformerBlocks"] | components["schemas"]["BigBirdBlocks"] | components["schemas"]["ChunkedBlocks"] | components["schemas"]["PrefixBlocks"];
        /**
         * Gradient outputs
         * @description The steps that were asked for, and grad_scores.
         */
        GradientOutputs: {
            /** @description (batch, heads, q_len, d_k): queries per head, projected by a layer. */
            q?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_k): keys of this request, without those of past_key. */
            k?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_v): values of this request. */
            v?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, d_k): queries after qk_norm and rope. */
            q_rotated?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_k): keys likewise, behind those of past_key. */
            k_rotated?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, kv_len), or what options.heads, queries and keys leave of it: q kᵀ, unscaled. Not hidden where another query of the head may see the key; null for a key that no query of the head may see, and in a row without keys. */
            scores?: components["schemas"]["ScoresOut"];
            /** @description As scores, after scale and softcap. */
            scaled?: components["schemas"]["ScoresOut"];
            /** @description As scaled, after bias and mask: null wherever the mask hides. */
            masked?: components["schemas"]["ScoresOut"];
            /** @description (batch, heads, q_len, kv_len), or what options.heads, queries and keys leave of it: weights after softmax and before dropout; a row sums to 1 (less what a sink takes), or to 0 without keys. With options.top_k its largest weights. */
            attention?: components["schemas"]["NumbersOut"] | components["schemas"]["TopKOut"];
            /** @description The weights after dropout. */
            dropped?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): log of the sum of exp of the masked scores and the sink; −∞ without keys and sink. */
            lse?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): lse over the keys alone, without the sink. */
            lse_keys?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): −Σ p ln p, in nats, the sink included. */
            entropy?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len): the weight of the sink. */
            sink?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, d_v): weights · v, after dropout. */
            context?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, heads · d_v), for a query of rank 2 (q_len, heads · d_v): the heads of context side by side. */
            concat?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, heads · d_v), for a query of rank 2 (q_len, heads · d_v): concat times the gate. */
            gated?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_attended), for a query of rank 2 (q_len, d_attended): concat · W_O + bias, before dropout. */
            projected?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, kv_len): the norm of what a key adds to projected, attention · |f(x_j)| with f(x) = (x W_V + b_V) W_O of the head, times |head_scale|. The bias of the output is left out. */
            contribution?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_attended), for a query of rank 2 (q_len, d_attended): query + projected, after dropout. */
            residual?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_attended), for a query of rank 2 (q_len, d_attended): what output is without weights.feed_forward. d_attended is d_out, unless options.feed_forward has residual false. */
            attention_output?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, d_out), for a query of rank 2 (q_len, d_out): the result of weights.feed_forward.down, before the residual. */
            feed_forward?: components["schemas"]["NumbersOut"];
            /** @description The result, with the rank of query: (batch, q_len, d_out); of rank 4 (batch, heads, q_len, d_v). */
            output?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_k): always of rank 4. It is past_key of the next request. */
            present_key?: components["schemas"]["NumbersOut"];
            /** @description (batch, kv_heads, kv_len, d_v): past_value of the next request. */
            present_value?: components["schemas"]["NumbersOut"];
            /** @description (batch, q_len, kv_len): mean of attention over all heads; options.queries and keys select. */
            attention_mean?: components["schemas"]["NumbersOut"];
            /** @description (batch, heads, q_len, kv_len), or what options.heads, queries and keys leave of it: whether the query may attend to the key. */
            mask?: components["schemas"]["FlagsOut"];
            /** @description (batch, heads, q_len, kv_len): the gradient of the masked scores. */
            grad_scores?: components["schemas"]["NumbersOut"];
        };
        /**
         * Gradient answer shapes
         * @description Shape of each output and gradient.
         */
        GradientAnswerShapes: {
            q?: components["schemas"]["Shape"];
            k?: components["schemas"]["Shape"];
            v?: components["schemas"]["Shape"];
            q_rotated?: components["schemas"]["Shape"];
            k_rotated?: components["schemas"]["Shape"];
            scores?: components["schemas"]["Shape"];
            scaled?: components["schemas"]["Shape"];
            masked?: components["schemas"]["Shape"];
            attention?: components["schemas"]["Shape"];
            dropped?: components["schemas"]["Shape"];
            lse?: components["schemas"]["Shape"];
            lse_keys?: components["schemas"]["Shape"];
            entropy?: components["schemas"]["Shape"];
            sink?: components["schemas"]["Shape"];
            context?: components["schemas"]["Shape"];
            concat?: components["schemas"]["Shape"];
            gated?: components["schemas"]["Shape"];
            projected?: components["schemas"]["Shape"];
            contribution?: components["schemas"]["Shape"];
            residual?: components["schemas"]["Shape"];
            attention_output?: components["schemas"]["Shape"];
            feed_forward?: components["schemas"]["Shape"];
            output?: components["schemas"]["Shape"];
            present_key?: components["schemas"]["Shape"];
            present_value?: components["schemas"]["Shape"];
            attention_mean?: components["schemas"]["Shape"];
            mask?: components["schemas"]["Shape"];
            grad_scores?: components["schemas"]["Shape"];
            gradients: components["schemas"]["GradientShapes"];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;

export type schemas = components["schemas"];
