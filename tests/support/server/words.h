/*
 * words.h: labels in several scripts: Turkish, Russian, Chinese, Japanese, Korean, and a letter with its accent apart.
 */
#ifndef TESTS_WORDS_H
#define TESTS_WORDS_H

static const char *const words[] = {"okula",
                                    "gidiyorum",
                                    "\xC3\xA7ok",
                                    "\xC4\x9F\xC3\xBCne\xC5\x9F",
                                    "\xC4\xB0yi",
                                    "\xC4\xB1l\xC4\xB1k",
                                    "\xD0\xBC\xD0\xB8\xD1\x80",
                                    "\xD1\x91\xD0\xB6",
                                    "\xE4\xBB\x8A\xE5\xA4\xA9",
                                    "\xE5\xA4\xA9\xE6\xB0\x94",
                                    "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E",
                                    "\xED\x95\x9C\xEA\xB5\xAD",
                                    "e\xCC\x81"};

enum { WORDS = sizeof words / sizeof words[0] };

#endif
