/* foreign.h: words of other programs, and the words that stand for them here. */
#ifndef CODEC_JSON_FOREIGN_H
#define CODEC_JSON_FOREIGN_H

#include <stdbool.h>

/* Words of one meaning. server/codec/words/ has the tables; docs/semantics.md and docs/models.md show them. */
struct foreign_word {
    const char *words; /* with spaces between them; attentionMask is attention_mask, too */
    const char
        *within;      /* the members, with spaces between them, within which the words mean that. NULL: in a section */
    const char *here; /* the path of the member here: "masks.padding"; NULL: there is none */
    const char *note; /* the difference, or the reason why there is none; NULL: the meaning is the same */
};

/*
 * Whether list, with spaces between its words, has a word. Capitals, '_' and '-' do not count. Of the name of a tensor,
 * the last part counts: "layers.0.self_attn.q_proj.weight" is q_proj.
 */
bool foreign_has(const char *list, const char *word);

#endif
