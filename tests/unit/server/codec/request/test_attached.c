/*
 * test_attached.c: tests of attached tensors, in tensor_member.c and decoder.c: tensors as bytes beside the JSON text.
 */
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "codec/request/envelope.h"

enum { ARENA_BYTES = 1 << 22 };

static attn_arena *arena;
static attn_error err;
static struct envelope envelope;

static float query_data[] = {1, 2, 3, 4};

static struct envelope_attachment attachment(const char *path, void *data, attn_dtype dtype, size_t rows,
                                             size_t columns)
{
    return (struct envelope_attachment){path, attn_tensor_view(data, dtype, 2, (size_t[]){rows, columns})};
}

static struct envelope_attachment query(void)
{
    return attachment("inputs.query", query_data, ATTN_F32, 2, 2);
}

static attn_status decode_as(envelope_kind kind, const char *text, const struct envelope_attachment *attachments,
                             size_t count)
{
    envelope_prepare();
    arena = attn_arena_create(ARENA_BYTES);
    err = (attn_error){0};
    const struct envelope_source request = {
        .text = text, .length = strlen(text), .attachments = attachments, .count = count};
    return envelope_decode_attached(&request, kind, arena, &envelope, &err);
}

static attn_status decode(const char *text, const struct envelope_attachment *attachments, size_t count)
{
    return decode_as(ENVELOPE_LAYER, text, attachments, count);
}

static void accept(const char *text, const struct envelope_attachment *attachments, size_t count)
{
    attn_status status = decode(text, attachments, count);
    ck_assert_msg(status == ATTN_OK, "%s: %s", attn_status_name(status), err.message);
}

static void refuse(const char *text, const struct envelope_attachment *attachments, size_t count, attn_status status,
                   const char *field, const char *message)
{
    ck_assert_int_eq(decode(text, attachments, count), status);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.message, message) != NULL, "%s", err.message);
    attn_arena_destroy(arena);
}

START_TEST(a_tensor_of_the_compute_type_is_used_where_it_lies)
{
    const struct envelope_attachment attachments[] = {query()};
    accept("", attachments, 1);
    const attn_tensor *tensor = envelope.request.inputs.query;
    ck_assert_ptr_eq(tensor->data, query_data);
    ck_assert(tensor->rank == 2 && tensor->shape[0] == 2 && tensor->stride[0] == 2 && tensor->dtype == ATTN_F32);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(tensors_and_text_make_one_request)
{
    float weight[] = {1, 0, 0, 1};
    uint8_t flags[] = {1, 0, 1, 1};
    const struct envelope_attachment attachments[] = {query(),
                                                      attachment("weights.query.weight", weight, ATTN_F32, 2, 2),
                                                      attachment("masks.attend", flags, ATTN_BOOL, 2, 2)};
    accept("{\"inputs\":{\"key\":[[5,6]]},\"weights\":{\"key\":{\"weight\":[[1]]}},\"options\":{\"num_heads\":2}}",
           attachments, 3);
    const attn_request *request = &envelope.request;
    ck_assert_ptr_eq(request->weights.query.weight->data, weight);
    ck_assert_ptr_eq(request->masks.attend->data, flags);
    ck_assert(((const float *)request->inputs.key->data)[1] == 6 && request->options.num_heads == 2);
    ck_assert_ptr_nonnull(request->weights.key.weight);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_weight_may_have_the_short_name_of_its_map)
{
    float weight[] = {1, 0, 0, 1};
    struct envelope_attachment attachments[] = {query(), attachment("weights.query", weight, ATTN_F32, 2, 2),
                                                attachment("weights.query.weight", weight, ATTN_F32, 2, 2)};
    accept("{\"weights\":{\"key\":[[1],[1]]}}", attachments, 2);
    ck_assert_ptr_eq(envelope.request.weights.query.weight->data, weight);
    attn_arena_destroy(arena);
    refuse("", attachments, 3, ATTN_ERR_FIELD, "/weights/query", "is no object that the tensor");
}
END_TEST

START_TEST(bytes_at_any_address_and_of_any_type_are_converted)
{
    unsigned char bytes[sizeof query_data + 1];
    memcpy(bytes + 1, query_data, sizeof query_data);
    uint16_t halves[] = {0x3C00, 0x4000, 0x4200, 0x4400}; /* 1, 2, 3, 4 */
    double doubles[] = {1, 2, 3, 4};
    int32_t integers[] = {1, 2, 3, 4};
    const struct envelope_attachment forms[] = {
        attachment("inputs.query", bytes + 1, ATTN_F32, 2, 2), attachment("inputs.query", halves, ATTN_F16, 2, 2),
        attachment("inputs.query", doubles, ATTN_F64, 2, 2), attachment("inputs.query", integers, ATTN_I32, 2, 2)};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        accept("", &forms[i], 1);
        const attn_tensor *tensor = envelope.request.inputs.query;
        ck_assert_int_eq(tensor->dtype, ATTN_F32);
        ck_assert_mem_eq(tensor->data, query_data, sizeof query_data);
        attn_arena_destroy(arena);
    }
    accept("{\"options\":{\"compute\":\"float64\"}}", forms, 1);
    ck_assert_mem_eq(envelope.request.inputs.query->data, doubles, sizeof doubles);
    attn_arena_destroy(arena);
}
END_TEST

/* Where the core takes 16 bits. What it must have in its own type is widened, as ever. */
START_TEST(sixteen_bits_stay_where_they_lie)
{
    static const struct {
        envelope_kind kind;
        const char *text, *path;
        attn_dtype dtype;
    } cases[] = {
        {ENVELOPE_ATTENTION, "", "inputs.key", ATTN_BF16},
        {ENVELOPE_ATTENTION, "{\"options\":{\"compute\":\"bfloat16\"}}", "inputs.value", ATTN_BF16},
        {ENVELOPE_ATTENTION, "", "inputs.past_value", ATTN_BF16},
        {ENVELOPE_LAYER, "", "inputs.past_key", ATTN_BF16},
        {ENVELOPE_LAYER, "", "inputs.key", ATTN_F32},
        {ENVELOPE_ATTENTION, "{\"options\":{\"compute\":\"float64\"}}", "inputs.key", ATTN_F64},
        {ENVELOPE_ATTENTION, "", "masks.bias", ATTN_F32},
        {ENVELOPE_ATTENTION_GRADIENTS, "{\"inputs\":{\"grad_output\":[[1,1]]}}", "inputs.key", ATTN_F32},
        {ENVELOPE_LAYER_GRADIENTS, "{\"inputs\":{\"grad_output\":[[1,1]]}}", "inputs.past_key", ATTN_F32},
    };
    uint16_t halves[] = {0x3F80, 0x4000, 0x4040, 0x4080}; /* 1, 2, 3, 4 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct envelope_attachment attachments[] = {query(), attachment(cases[i].path, halves, ATTN_BF16, 2, 2)};
        ck_assert_msg(decode_as(cases[i].kind, cases[i].text, attachments, 2) == ATTN_OK, "%s", err.message);
        const attn_inputs *inputs = &envelope.request.inputs;
        const attn_tensor *tensor = strstr(cases[i].path, ".key") != NULL          ? inputs->key
                                    : strstr(cases[i].path, ".value") != NULL      ? inputs->value
                                    : strstr(cases[i].path, ".past_key") != NULL   ? inputs->past_key
                                    : strstr(cases[i].path, ".past_value") != NULL ? inputs->past_value
                                                                                   : envelope.request.masks.bias;
        float numbers[4];
        ck_assert_msg(tensor->dtype == cases[i].dtype, "%zu: %s", i, attn_dtype_name(tensor->dtype));
        ck_assert_int_eq(attn_convert(numbers, ATTN_F32, tensor->data, tensor->dtype, 4, NULL), ATTN_OK);
        ck_assert_mem_eq(numbers, query_data, sizeof numbers);
        ck_assert_int_eq(tensor->data == halves, tensor->dtype == ATTN_BF16);
        attn_arena_destroy(arena);
    }
}
END_TEST

/* Without elements, the address does not matter. */
START_TEST(a_tensor_without_elements_is_taken_as_it_is)
{
    const struct envelope_attachment empty = attachment("inputs.query", NULL, ATTN_F16, 0, 2);
    accept("", &empty, 1);
    const attn_tensor *tensor = envelope.request.inputs.query;
    ck_assert(tensor->dtype == ATTN_F32 && tensor->rank == 2 && tensor->shape[0] == 0 && tensor->shape[1] == 2);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(nothing_is_lost_silently)
{
    double large[] = {1, 2, 3, 1e300};
    int32_t precise[] = {1, 2, 3, 16777217};
    uint8_t flags[] = {0, 1, 2, 1};
    float numbers[] = {1, 1, 1, 1};
    struct envelope_attachment attachments[] = {attachment("inputs.query", large, ATTN_F64, 2, 2), query()};
    refuse("", attachments, 1, ATTN_ERR_VALUE, "/inputs/query", "cannot become float32");
    attachments[0] = attachment("inputs.query", precise, ATTN_I32, 2, 2);
    refuse("", attachments, 1, ATTN_ERR_VALUE, "/inputs/query", "cannot become float32");
    attachments[0] = attachment("masks.attend", flags, ATTN_BOOL, 2, 2);
    refuse("", attachments, 2, ATTN_ERR_VALUE, "/masks/attend", "only the bytes 0 and 1");
    attachments[0] = attachment("masks.attend", numbers, ATTN_F32, 2, 2);
    refuse("", attachments, 2, ATTN_ERR_VALUE, "/masks/attend", "must be of bool or an integer type, received float32");
}
END_TEST

START_TEST(a_path_must_be_free_and_known)
{
    struct envelope_attachment attachments[] = {query(), query()};
    refuse("{\"inputs\":{\"query\":[[1]]}}", attachments, 1, ATTN_ERR_FIELD, "/inputs/query", "is given twice");
    refuse("", attachments, 2, ATTN_ERR_FIELD, "/inputs/query", "is given twice");
    refuse("{\"inputs\":[]}", attachments, 1, ATTN_ERR_FIELD, "/inputs", "is no object that the tensor");
    attachments[1].path = "inputs.query.weight";
    refuse("", attachments, 2, ATTN_ERR_FIELD, "/inputs/query", "is no object that the tensor");
    static const struct {
        const char *path, *field, *message;
    } wrong[] = {
        {"inputs.qery", "/inputs/qery", "did you mean \"query\""},
        {"query", "/query", "unknown member"},
        {"", "/", "unknown member"},
        {"inputs", "/inputs", "is given twice"},
        {"masks", "/masks", "must be an object, received a binary tensor"},
        {"inputs.", "/inputs/", "unknown member"},
        {"options.num_heads", "/options/num_heads", "received a binary tensor"},
        {"options.heads", "/options/heads", "received a binary tensor"},
        {"options.norm", "/options/norm", "received a binary tensor"},
        {"tokens.query", "/tokens/query", "received a binary tensor"},
        {"inputs.key.base64", "/inputs/key", "has no \"shape\""},
        {"a.b.c.d.e.f.g.h.i.j", "/a", "as deep as the tensor"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        attachments[1].path = wrong[i].path;
        refuse("", attachments, 2, ATTN_ERR_FIELD, wrong[i].field, wrong[i].message);
    }
}
END_TEST

START_TEST(text_that_is_no_object_is_refused_as_ever)
{
    const struct envelope_attachment attachments[] = {query()};
    refuse("[]", attachments, 1, ATTN_ERR_FIELD, "", "must be a JSON object");
    refuse("{", attachments, 1, ATTN_ERR_SYNTAX, "", "not JSON");
    refuse("", NULL, 0, ATTN_ERR_SYNTAX, "", "has no body");
}
END_TEST

START_TEST(a_marker_cannot_be_written_by_hand)
{
    const struct envelope_attachment attachments[] = {query()};
    refuse("{\"inputs\":{\"key\":[0]},\"masks\":{\"window\":[1]}}", attachments, 1, ATTN_ERR_VALUE, "/masks/window",
           "a list [left, right]");
}
END_TEST

START_TEST(more_attachments_than_members_are_refused)
{
    struct envelope_attachment many[ENVELOPE_ATTACHMENTS_MAX + 1];
    for (size_t i = 0; i <= ENVELOPE_ATTACHMENTS_MAX; i++)
        many[i] = query();
    refuse("", many, ENVELOPE_ATTACHMENTS_MAX + 1, ATTN_ERR_TOO_LARGE, "", "257 binary tensors");
}
END_TEST

CHECK_MAIN("envelope_attached")
{
    tcase_add_test(tests, a_tensor_of_the_compute_type_is_used_where_it_lies);
    tcase_add_test(tests, tensors_and_text_make_one_request);
    tcase_add_test(tests, a_weight_may_have_the_short_name_of_its_map);
    tcase_add_test(tests, bytes_at_any_address_and_of_any_type_are_converted);
    tcase_add_test(tests, sixteen_bits_stay_where_they_lie);
    tcase_add_test(tests, a_tensor_without_elements_is_taken_as_it_is);
    tcase_add_test(tests, nothing_is_lost_silently);
    tcase_add_test(tests, a_path_must_be_free_and_known);
    tcase_add_test(tests, text_that_is_no_object_is_refused_as_ever);
    tcase_add_test(tests, a_marker_cannot_be_written_by_hand);
    tcase_add_test(tests, more_attachments_than_members_are_refused);
}
