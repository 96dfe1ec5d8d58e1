/*
 * http_client.c: attention over HTTP from C, with libcurl. Floats go out and come back as bytes (safetensors), so there
 * is no text of numbers to write or parse. ATTND_URL names another server.
 *
 *     cc http_client.c $(pkg-config --cflags --libs libcurl) -o http_client && ./http_client
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 3, FEATURES = 2 };

/* A message: eight bytes of length, a header in JSON of that length, then the tensors' bytes. */
struct message {
    unsigned char *bytes;
    size_t size;
};

/* What the request says besides numbers is JSON in a text of JSON, so its quotes are escaped. */
static const char request_header[] =
    "{\"__metadata__\":{\"request\":"
    "\"{\\\"masks\\\":{\\\"causal\\\":true},\\\"options\\\":{\\\"return\\\":[\\\"output\\\"]}}\"},"
    "\"inputs.query\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
    "\"inputs.key\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[24,48]},"
    "\"inputs.value\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[48,72]}}";

/* The length goes before the header in little-endian order, as this machine's own is wherever attnd runs. */
static void write_request(struct message *message, const float *query, const float *key, const float *value)
{
    const uint64_t header_size = sizeof request_header - 1;
    const size_t tensor_size = sizeof(float) * TOKENS * FEATURES;
    message->size = sizeof header_size + header_size + 3 * tensor_size;
    message->bytes = malloc(message->size);
    if (message->bytes == NULL)
        exit(1);
    unsigned char *data = message->bytes + sizeof header_size + header_size;
    memcpy(message->bytes, &header_size, sizeof header_size);
    memcpy(message->bytes + sizeof header_size, request_header, header_size);
    memcpy(data, query, tensor_size);
    memcpy(data + tensor_size, key, tensor_size);
    memcpy(data + 2 * tensor_size, value, tensor_size);
}

static size_t receive(char *piece, size_t one, size_t size, void *closure)
{
    struct message *answer = closure;
    unsigned char *larger = realloc(answer->bytes, answer->size + size + 1);
    if (larger == NULL)
        return 0;
    memcpy(larger + answer->size, piece, size);
    answer->bytes = larger;
    answer->size += size;
    answer->bytes[answer->size] = '\0'; /* errors are text */
    return size * one;
}

/* The only tensor of the answer, or NULL. It is used in place: the server starts data at a multiple of 64 bytes. */
static const float *first_tensor(const struct message *answer, size_t count)
{
    uint64_t header_size;
    if (answer->size < sizeof header_size)
        return NULL;
    memcpy(&header_size, answer->bytes, sizeof header_size);
    const size_t rest = answer->size - sizeof header_size;
    if (header_size > rest || rest - header_size != count * sizeof(float))
        return NULL;
    return (const float *)(const void *)(answer->bytes + sizeof header_size + header_size);
}

/* The status, or 0 with a complaint. */
static long post(const char *url, const struct message *request, struct message *answer)
{
    static const char media_type[] = "application/vnd.attnd.safetensors";
    char type[128], accept[128];
    snprintf(type, sizeof type, "Content-Type: %s", media_type);
    snprintf(accept, sizeof accept, "Accept: %s", media_type);
    struct curl_slist *headers = curl_slist_append(curl_slist_append(NULL, type), accept);
    CURL *call = curl_easy_init();
    long status = 0;
    curl_easy_setopt(call, CURLOPT_URL, url);
    curl_easy_setopt(call, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(call, CURLOPT_POSTFIELDS, request->bytes); /* not copied */
    curl_easy_setopt(call, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
    curl_easy_setopt(call, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(call, CURLOPT_WRITEDATA, answer);
    const CURLcode outcome = curl_easy_perform(call);
    if (outcome == CURLE_OK)
        curl_easy_getinfo(call, CURLINFO_RESPONSE_CODE, &status);
    else
        fprintf(stderr, "%s: %s\n", url, curl_easy_strerror(outcome));
    curl_easy_cleanup(call);
    curl_slist_free_all(headers);
    return status;
}

int main(void)
{
    const float query[] = {0.3f, 0.8f, 1.2f, 0.4f, 1.2f, 1.3f};
    const float key[] = {0.8f, 0.3f, 0.4f, 1.2f, 1.3f, 1.2f};
    const float value[] = {0.2f, 0.7f, 0.9f, 0.1f, 0.4f, 0.5f};
    const char *server = getenv("ATTND_URL");
    char url[512];
    snprintf(url, sizeof url, "%s/v1/attention", server != NULL ? server : "http://127.0.0.1:8080");

    struct message request, answer = {NULL, 0};
    write_request(&request, query, key, value);
    const long status = post(url, &request, &answer);
    const float *out = status == 200 ? first_tensor(&answer, TOKENS * FEATURES) : NULL;
    if (out != NULL)
        for (int i = 0; i < TOKENS; i++)
            printf("out %.4f %.4f\n", (double)out[FEATURES * i], (double)out[FEATURES * i + 1]);
    else if (status != 0)
        fprintf(stderr, "status %ld: %s\n", status, (const char *)answer.bytes);
    free(request.bytes);
    free(answer.bytes);
    return out != NULL ? 0 : 1;
}
