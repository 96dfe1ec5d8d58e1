/* health.c: writes the server's answers about itself. */
#include "service/endpoints.h"

#include "attn/runtime.h"
#include "base/array.h"
#include "codec/json/tree.h"

#if defined(__clang__)
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

static void write_member(struct chunks *out, const char *name, const char *value)
{
    chunks_format(out, "\"%s\":", name);
    chunks_json_string(out, value);
}

void health_write_live(struct chunks *out)
{
    chunks_text(out, "{\"live\":true}");
}

void health_write_ready(unsigned reasons, struct chunks *out)
{
    static const struct {
        unsigned reason;
        const char *name;
    } names[] = {{HEALTH_STARTING, "starting"},
                 {HEALTH_DRAINING, "draining"},
                 {HEALTH_QUEUE_FULL, "queue full"},
                 {HEALTH_MEMORY, "memory nearly used up"},
                 {HEALTH_USELESS, "no model or layer can be used"}};
    if (reasons == 0) {
        chunks_text(out, "{\"ready\":true}");
        return;
    }
    const char *separator = "";
    chunks_text(out, "{\"ready\":false,\"reasons\":[");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (reasons & names[i].reason) {
            chunks_format(out, "%s\"%s\"", separator, names[i].name);
            separator = ",";
        }
    chunks_text(out, "]}");
}

void health_write_version(const struct health_facts *facts, struct chunks *out)
{
    chunks_text(out, "{\"name\":\"attnd\",\"version\":\"" ATTN_VERSION "\",\"libraries\":{");
    write_member(out, "http", facts->http_library);
    chunks_text(out, ",");
    write_member(out, "json", json_tree_library());
    chunks_text(out, ",");
    write_member(out, "blas", attn_blas_description());
    chunks_text(out, "},");
    write_member(out, "kernel", facts->kernel);
    chunks_format(out, ",\"threads\":{\"io\":%zu,\"compute\":%zu},", facts->io_threads, facts->compute_threads);
    write_member(out, "compiler", COMPILER " " __VERSION__);
    chunks_text(out, "}");
}

void health_write_index(struct chunks *out)
{
    chunks_text(out, "{\"name\":\"attnd\",\"version\":\"" ATTN_VERSION "\",\"links\":{"
                     "\"attention\":\"/v1/attention\",\"multi_head_attention\":\"/v1/multi-head-attention\","
                     "\"layers\":\"/v1/layers\",\"caches\":\"/v1/caches\",\"models\":\"/v1/models\","
                     "\"openapi\":\"/openapi.json\",\"docs\":\"/docs\",\"version\":\"/version\",\"live\":\"/livez\","
                     "\"ready\":\"/readyz\",\"metrics\":\"/metrics\",\"inference\":\"/v2\"}}");
}
