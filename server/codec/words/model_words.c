/*
 * model_words.c: words of transformers, its tokenizers, its pipelines and KServe for requests to whole models.
 */
#include <stddef.h>

#include "codec/words/words.h"

const struct foreign_word model_words[] = {
    {"input_ids", NULL, "inputs.ids", NULL},
    {"decoder_input_ids", NULL, "inputs.target_ids", NULL},
    {"labels", NULL, "inputs.target", "the text of the labels, which is shifted right as labels are"},
    {"text_target", NULL, "inputs.target", NULL},
    {"text_pair", NULL, "inputs.pair", NULL},
    {"token_type_ids return_token_type_ids", NULL, "inputs.pair", "the text of the second segment"},
    {"pixel_values", NULL, "inputs.pixels", NULL},
    {"inputs_embeds", NULL, "inputs.embeddings", NULL},
    {"decoder_inputs_embeds", NULL, NULL, "a decoder takes inputs.target or inputs.target_ids"},
    {"input prompt sentence texts sentences instances", NULL, "inputs.text", "one text, or a list of texts"},
    {"query key value q k v x vectors", NULL, NULL,
     "queries, keys and values go to POST /v1/attention; vectors of a model's own tokens are inputs.embeddings"},
    {"masks mask causal", NULL, NULL, "a model has its own masks; POST /v1/attention takes others"},
    {"attention_mask decoder_attention_mask padding padding_side pad_to_multiple_of", NULL, NULL,
     "each item runs alone, in its own length, so there is no padding: leave it out"},
    {"position_ids", NULL, NULL, "positions begin at the model's first one for every item, and cannot be given"},
    {"head_mask", NULL, "options.ablate", "a list of [layer, head] that are switched off"},
    {"cross_attn_head_mask", NULL, NULL,
     "a model with an encoder and a decoder takes no option that switches heads off"},
    {"past_key_values use_cache", NULL, NULL, "a request is one pass of the model, and nothing is kept of it"},
    {"parameters", NULL, "options", NULL},
    {"truncation max_length model_max_length", NULL, "options.truncate",
     "true cuts a text to the longest sequence of the model; no other length can be set"},
    {"add_special_tokens skip_special_tokens", NULL, "options.special_tokens",
     "it says whether special tokens are added; texts of ids have them all"},
    {"return_tensors", NULL, "options.format", "Accept, too, says in which form the tensors come"},
    {"return_dict", NULL, NULL, "leave it out: an answer names all it holds"},
    {"return_offsets_mapping return_special_tokens_mask", NULL, NULL, "POST /v1/models/{model}/tokens always gives it"},
    {"return_attention_mask", NULL, NULL, "\"lengths\" of an answer says how many tokens each item has"},
    {"is_split_into_words", NULL, NULL, "inputs.text is a text as people write it: join the words by spaces"},
    {"output_attentions", NULL, "options.return", "\"attention\", the default, gives the maps"},
    {"output_hidden_states", NULL, "options.return", "\"hidden\" gives them"},
    {"attentions attn_weights weights", "return", "attention", NULL},
    {"hidden_states", "return", "hidden", NULL},
    {"last_hidden_state", "return", "output", NULL},
    {"torch_dtype", NULL, "options.compute", "the type of the computation, float32, float64 or bfloat16"},
    {"max_new_tokens min_new_tokens do_sample temperature top_p num_beams num_return_sequences", NULL, NULL,
     "a request is one pass of the model; options.predictions_k says how many words are predicted"},
    {0},
};
