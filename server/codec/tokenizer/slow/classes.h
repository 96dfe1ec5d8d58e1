/* classes.h: what each class of slow tokenizers does with its files. */
#ifndef CODEC_TOKENIZER_SLOW_CLASSES_H
#define CODEC_TOKENIZER_SLOW_CLASSES_H

#include "base/text.h"

enum slow_form {
    SLOW_WORDPIECE,  /* vocab.txt */
    SLOW_BYTE_LEVEL, /* vocab.json and merges.txt: bytes as visible characters */
    SLOW_CLIP,       /* the same with </w> behind words */
    SLOW_SPM,        /* SentencePiece with the ids of its pieces, behind the tokens of head */
    SLOW_SPM_VOCAB   /* SentencePiece with the ids of vocab.json */
};

struct slow_class {
    const char *names;  /* of the classes, without "Fast" */
    const char *models; /* the types of config.json whose class it is; "" for none */
    enum slow_form form;
    const char *tokens; /* the special tokens by default: "unk=[UNK] …"; ~ behind one: it takes the space before it */
    /*
     * What is added to a text, and to a pair: A and B are the texts, other letters special tokens: b bos, e eos, s sep,
     * c cls, l the language. A digit behind a letter is the type id.
     */
    const char *single, *pair;
    const char *head;        /* SLOW_SPM: tokens before the pieces; "" for none */
    unsigned skipped;        /* SLOW_SPM: pieces at the front that the head replaces */
    const char *tail;        /* tokens behind the pieces, or behind those of vocab.json */
    const char *normalizers; /* steps before those of the model, as JSON, each with a comma behind it; "" for none */
    bool has_sentinels;      /* <extra_id_0> … behind the vocabulary, backwards */
    bool lowers_by_default;  /* do_lower_case, when tokenizer_config.json does not say it */
    bool has_legacy;         /* "legacy": false adds a space before the text alone, not behind special tokens */
    bool adds_by_settings;   /* add_bos_token and add_eos_token say what is added; single and pair have both */
    bool bos_by_default;     /* add_bos_token, when tokenizer_config.json does not say it */
};

/* NULL: no class has the name. */
const struct slow_class *slow_class_find(struct text_span name);
/* NULL: there is no rule for that type of model. */
const struct slow_class *slow_class_of_model(struct text_span model_type);

#endif
