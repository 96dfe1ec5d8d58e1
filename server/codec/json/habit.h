/* habit.h: what people write from habit, in JavaScript or Python, where JSON has something else. */
#ifndef CODEC_JSON_HABIT_H
#define CODEC_JSON_HABIT_H

/*
 * A sentence about the mistake at the byte at of the text from begin to end, at which a parser of JSON stopped. NULL
 * when it is none of the usual ones. Static storage.
 */
const char *habit_find(const char *begin, const char *at, const char *end);

#endif
