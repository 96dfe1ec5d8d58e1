/*
 * habit.h: what people write from habit: where JavaScript or Python have another notation than JSON, and where other
 * programs have another word.
 */
#ifndef CODEC_JSON_HABIT_H
#define CODEC_JSON_HABIT_H

#include <stdbool.h>

/*
 * A sentence about the mistake at the byte at of the text from begin to end, at which a parser of JSON stopped. NULL
 * when it is none of the usual ones. Static storage.
 */
const char *habit_find(const char *begin, const char *at, const char *end);

/* Words of one meaning. server/codec/words/ has the tables; docs/semantics.md and docs/models.md show them. */
struct foreign_word {
    const char *words;  /* with spaces between them; attentionMask is attention_mask, too */
    const char *within; /* the members within which the words mean that, with spaces; NULL: in a section */
    const char *here;   /* the path of the member here: "masks.padding"; NULL: there is none */
    const char *note;   /* the difference, or the reason why there is none; NULL: the meaning is the same */
};

/*
 * Whether list, with spaces between its words, has a word. Capitals, '_' and '-' do not count. Of the name of a tensor,
 * the last part counts: "layers.0.self_attn.q_proj.weight" is q_proj.
 */
bool foreign_has(const char *list, const char *word);

#endif
