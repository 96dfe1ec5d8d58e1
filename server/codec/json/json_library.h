/*
 * json_library.h: which JSON library this folder stands on, for those who may not include it.
 */
#ifndef CODEC_JSON_JSON_LIBRARY_H
#define CODEC_JSON_JSON_LIBRARY_H

/* "jansson 2.14": the one this was built with. Static storage. */
const char *json_library_description(void);

#endif
