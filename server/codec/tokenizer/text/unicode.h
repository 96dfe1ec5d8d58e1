/* unicode.h: properties of characters, as the tokenizers of Hugging Face ask for them. */
#ifndef CODEC_TOKENIZER_TEXT_UNICODE_H
#define CODEC_TOKENIZER_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool unicode_is_space(uint32_t c);       /* the property White_Space */
bool unicode_is_punctuation(uint32_t c); /* ASCII's, and the categories P* of Unicode 8 */
bool unicode_is_numeric(uint32_t c);     /* the categories N* */
bool unicode_is_word(uint32_t c);        /* letters, marks, decimal digits, connectors, joiners: \w */
bool unicode_is_control(uint32_t c);     /* the categories Cc, Co, and Cf of Unicode 8 */
bool unicode_is_mark(uint32_t c);        /* the categories M* of Unicode 9 */
bool unicode_is_nonspacing(uint32_t c);  /* the category Mn of Unicode 8 */

enum { UNICODE_LOWER_MAX = 2, UNICODE_PARTS_MAX = 32 };

/* Each writes characters to to and returns how many. */
size_t unicode_lower(uint32_t c, uint32_t to[UNICODE_LOWER_MAX]);
size_t unicode_decompose(uint32_t c, bool is_compatible, uint32_t to[UNICODE_PARTS_MAX]);

/* The canonical combining class, at most 254; 0: a starter. */
unsigned unicode_combining_class(uint32_t c);
/* Whether the pair has a composition in NFC. */
bool unicode_compose(uint32_t first, uint32_t second, uint32_t *composed);
/* Whether a grapheme ends between a and b. *state is 0 before the first pair of a text. */
bool unicode_breaks(uint32_t a, uint32_t b, int32_t *state);

/* GPT-2's alphabet: a visible character for each byte. unicode_to_byte returns -1 for all other characters. */
uint32_t unicode_of_byte(unsigned char byte);
int unicode_to_byte(uint32_t c);

#endif
