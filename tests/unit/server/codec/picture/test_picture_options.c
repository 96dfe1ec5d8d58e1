/*
 * test_picture_options.c: tests server/codec/picture/options.c.
 */
#include "codec/picture/image.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

static attn_error error;

static void expect(attn_status got, attn_status wanted, const char *field, const char *fragment)
{
    ck_assert_int_eq(got, wanted);
    ck_assert_int_eq(error.status, wanted);
    ck_assert_str_eq(error.field, field);
    ck_assert_msg(strstr(error.message, fragment) != NULL, "\"%s\" is not in \"%s\"", fragment, error.message);
}

START_TEST(parameters_are_read)
{
    struct picture_options options;
    static const struct text_pair all[] = {{"head", "2"}, {"batch", "0"}, {"colormap", "cividis"}, {"scale", "3"}};
    ck_assert_int_eq(picture_options_read(PICTURE_OF_LAYER, all, 4, &options, &error), ATTN_OK);
    ck_assert_uint_eq(options.head, 2);
    ck_assert_uint_eq(options.batch, 0);
    ck_assert_int_eq(options.colormap, COLORMAP_CIVIDIS);
    ck_assert_int_eq(options.scale, 3);
    ck_assert_int_eq(picture_options_read(PICTURE_OF_LAYER, NULL, 0, &options, &error), ATTN_OK);
    ck_assert_uint_eq(options.head, PICTURE_ALL);
    static const struct text_pair every[] = {{"head", "all"}};
    ck_assert_int_eq(picture_options_read(PICTURE_OF_LAYER, every, 1, &options, &error), ATTN_OK);
    ck_assert_uint_eq(options.head, PICTURE_ALL);
    ck_assert(picture_options_has(PICTURE_OF_LAYER, "scale") && !picture_options_has(PICTURE_OF_LAYER, "width"));
}
END_TEST

struct refused_parameter {
    struct text_pair parameter;
    attn_status status;
    const char *field, *message;
};

static const struct refused_parameter REFUSED[] = {
    {{"head", "-1"}, ATTN_ERR_VALUE, "?head", "head is \"-1\"; expected the number of a head, from 0, or all"},
    {{"head", ""}, ATTN_ERR_VALUE, "?head", "head is \"\"; expected"},
    {{"head", "1234567890"}, ATTN_ERR_VALUE, "?head", "expected the number of a head"},
    {{"batch", "1.5"}, ATTN_ERR_VALUE, "?batch", "batch is \"1.5\"; expected the number of a batch item"},
    {{"colormap", "jet\"\n"},
     ATTN_ERR_VALUE,
     "?colormap",
     "colormap is \"jet\\\"\xE2\x86\xB5\"; expected viridis, cividis, grey or signed"},
    {{"scale", "5"}, ATTN_ERR_VALUE, "?scale", "scale is \"5\"; expected a whole number of pixels from 1 to 4"},
    {{"scale", "0"}, ATTN_ERR_VALUE, "?scale", "expected a whole number"},
    {{"heads", "2"}, ATTN_ERR_FIELD, "", "\"heads\" is not a parameter of a picture; there are head, batch, colormap"},
};

START_TEST(wrong_parameters_are_refused_by_name)
{
    struct picture_options options;
    for (size_t i = 0; i < COUNT(REFUSED); i++)
        expect(picture_options_read(PICTURE_OF_LAYER, &REFUSED[i].parameter, 1, &options, &error), REFUSED[i].status,
               REFUSED[i].field, REFUSED[i].message);
    static const struct text_pair twice[] = {{"head", "1"}, {"head", "1"}};
    expect(picture_options_read(PICTURE_OF_LAYER, twice, 2, &options, &error), ATTN_ERR_FIELD, "?head",
           "head comes twice");
}
END_TEST

START_TEST(a_picture_of_a_model_has_layers_and_parts)
{
    struct picture_options options;
    static const struct text_pair all[] = {{"layer", "7"}, {"head", "all"}, {"batch", "2"}, {"part", "cross"}};
    ck_assert_int_eq(picture_options_read(PICTURE_OF_MODEL, all, 4, &options, &error), ATTN_OK);
    ck_assert(options.layer == 7 && options.head == PICTURE_ALL && options.batch == 2);
    ck_assert(options.kind == PICTURE_OF_MODEL && options.part == PICTURE_PART_CROSS);
    ck_assert_int_eq(picture_options_read(PICTURE_OF_MODEL, NULL, 0, &options, &error), ATTN_OK);
    ck_assert(options.layer == PICTURE_ALL && options.batch == 0 && options.part == PICTURE_PART_DEFAULT);
    static const struct refused_parameter refused[] = {
        {{"batch", "all"}, ATTN_ERR_VALUE, "?batch", "expected the number of a batch item, from 0"},
        {{"layer", "last"}, ATTN_ERR_VALUE, "?layer", "expected the number of a layer, from 0, or all"},
        {{"part", "both"}, ATTN_ERR_VALUE, "?part", "part is \"both\"; expected encoder, decoder or cross"},
        {{"depth", "2"}, ATTN_ERR_FIELD, "", "there are layer, head, batch, part, colormap and scale"},
    };
    for (size_t i = 0; i < COUNT(refused); i++)
        expect(picture_options_read(PICTURE_OF_MODEL, &refused[i].parameter, 1, &options, &error), refused[i].status,
               refused[i].field, refused[i].message);
    expect(picture_options_read(PICTURE_OF_LAYER, all, 1, &options, &error), ATTN_ERR_FIELD, "",
           "\"layer\" is not a parameter of a picture");
}
END_TEST

CHECK_MAIN("picture_options")
{
    tcase_add_test(tests, parameters_are_read);
    tcase_add_test(tests, wrong_parameters_are_refused_by_name);
    tcase_add_test(tests, a_picture_of_a_model_has_layers_and_parts);
}
