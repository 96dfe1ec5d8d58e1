/* demo.c: the files of examples/train_demo/model, embedded. */
#include "service/registry/model/files.h"

#include "base/embedded_file.h"

EMBEDDED_FILE(demo_config, "examples/train_demo/model/config.json");
EMBEDDED_FILE(demo_tensors, "examples/train_demo/model/model.safetensors");
EMBEDDED_FILE(demo_tokenizer, "examples/train_demo/model/tokenizer.json");

static struct checkpoint_text text_of(const char *begin, const char *end)
{
    return (struct checkpoint_text){begin, (size_t)(end - begin)};
}

attn_status demo_model_open(struct model_files *files, attn_budget *budget, attn_error *err)
{
    return model_files_borrow(files, budget, text_of(demo_config_begin, demo_config_end),
                              text_of(demo_tensors_begin, demo_tensors_end),
                              text_of(demo_tokenizer_begin, demo_tokenizer_end), err);
}
