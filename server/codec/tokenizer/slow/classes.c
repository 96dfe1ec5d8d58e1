/* classes.c: the table of the classes of slow tokenizers, from the equations of their Python sources. */
#include "codec/tokenizer/slow/parts.h"

#include <string.h>

#include "base/array.h"

#define OF_BERT    "unk=[UNK] sep=[SEP] pad=[PAD] cls=[CLS] mask=[MASK]"
#define OF_ROBERTA "bos=<s> eos=</s> unk=<unk> sep=</s> pad=<pad> cls=<s> mask=<mask>~"
#define OF_MBART                                                                                                       \
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP "     \
    "nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN "
#define OF_MBART50                                                                                                     \
    "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE "     \
    "ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI "
#define OF_M2M100                                                                                                      \
    "__af__ __am__ __ar__ __ast__ __az__ __ba__ __be__ __bg__ __bn__ __br__ __bs__ __ca__ __ceb__ "                    \
    "__cs__ __cy__ __da__ __de__ __el__ __en__ __es__ __et__ __fa__ __ff__ __fi__ __fr__ __fy__ "                      \
    "__ga__ __gd__ __gl__ __gu__ __ha__ __he__ __hi__ __hr__ __ht__ __hu__ __hy__ __id__ __ig__ "                      \
    "__ilo__ __is__ __it__ __ja__ __jv__ __ka__ __kk__ __km__ __kn__ __ko__ __lb__ __lg__ __ln__ "                     \
    "__lo__ __lt__ __lv__ __mg__ __mk__ __ml__ __mn__ __mr__ __ms__ __my__ __ne__ __nl__ __no__ "                      \
    "__ns__ __oc__ __or__ __pa__ __pl__ __ps__ __pt__ __ro__ __ru__ __sd__ __si__ __sk__ __sl__ "                      \
    "__so__ __sq__ __sr__ __ss__ __su__ __sv__ __sw__ __ta__ __th__ __tl__ __tn__ __tr__ __uk__ "                      \
    "__ur__ __uz__ __vi__ __wo__ __xh__ __yi__ __yo__ __zh__ __zu__"
#define QUOTES                                                                                                         \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"``\"},\"content\":\"\\\"\"},"                                     \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"''\"},\"content\":\"\\\"\"},"
#define ONE_SPACE "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\s+\"},\"content\":\" \"},"

static const struct slow_class classes[] = {
    {.names = "BertTokenizer DistilBertTokenizer ElectraTokenizer MobileBertTokenizer ConvBertTokenizer "
              "SqueezeBertTokenizer LayoutLMTokenizer LxmertTokenizer DPRContextEncoderTokenizer "
              "DPRQuestionEncoderTokenizer DPRReaderTokenizer RetriBertTokenizer RealmTokenizer",
     .models = "bert distilbert electra mobilebert convbert squeezebert layoutlm nomic_bert",
     .form = SLOW_WORDPIECE,
     .tokens = OF_BERT,
     .single = "cAs",
     .pair = "cAsB1s1",
     .lowers_by_default = true},
    {.names = "MPNetTokenizer",
     .models = "mpnet",
     .form = SLOW_WORDPIECE,
     .tokens = "bos=<s> eos=</s> unk=[UNK] sep=</s> pad=<pad> cls=<s> mask=<mask>~",
     .single = "cAs",
     .pair = "cAssBs",
     .lowers_by_default = true},
    {.names = "GPT2Tokenizer CodeGenTokenizer",
     .models = "gpt2 gptj gpt_neo codegen gpt_bigcode",
     .form = SLOW_BYTE_LEVEL,
     .tokens = "bos=<|endoftext|> eos=<|endoftext|> unk=<|endoftext|>",
     .single = "bA",
     .pair = "bAbB",
     .adds_by_settings = true},
    {.names = "RobertaTokenizer BartTokenizer LongformerTokenizer LEDTokenizer MvpTokenizer",
     .models = "roberta bart longformer led mvp",
     .form = SLOW_BYTE_LEVEL,
     .tokens = OF_ROBERTA,
     .single = "cAs",
     .pair = "cAssBs"},
    {.names = "BlenderbotTokenizer",
     .models = "blenderbot",
     .form = SLOW_BYTE_LEVEL,
     .tokens = OF_ROBERTA,
     .single = "Ae",
     .pair = "Ae"},
    {.names = "DebertaTokenizer",
     .models = "deberta",
     .form = SLOW_BYTE_LEVEL,
     .tokens = "bos=[CLS] eos=[SEP] unk=[UNK] sep=[SEP] pad=[PAD] cls=[CLS] mask=[MASK]~",
     .single = "cAs",
     .pair = "cAsB1s1"},
    {.names = "Qwen2Tokenizer",
     .models = "qwen2 qwen3 qwen2_moe qwen3_moe",
     .form = SLOW_BYTE_LEVEL,
     .tokens = "unk=<|endoftext|> eos=<|endoftext|> pad=<|endoftext|>",
     .single = "A",
     .pair = "AB",
     .normalizers = "{\"type\":\"NFC\"},"},
    {.names = "WhisperTokenizer",
     .models = "whisper",
     .form = SLOW_BYTE_LEVEL,
     .tokens = "cls=<|startoftranscript|> sep=<|notimestamps|> unk=<|endoftext|> bos=<|endoftext|> eos=<|endoftext|>",
     .single = "csAe",
     .pair = "csABe"},
    {.names = "CLIPTokenizer",
     .models = "clip clip_text_model",
     .form = SLOW_CLIP,
     .tokens = "bos=<|startoftext|> eos=<|endoftext|> unk=<|endoftext|> pad=<|endoftext|>",
     .single = "bAe",
     .pair = "bAeeBe"},
    {.names = "T5Tokenizer",
     .models = "t5 mt5 umt5",
     .form = SLOW_SPM,
     .tokens = "eos=</s> unk=<unk> pad=<pad>",
     .single = "Ae",
     .pair = "AeBe",
     .has_sentinels = true,
     .has_legacy = true},
    {.names = "AlbertTokenizer",
     .models = "albert",
     .form = SLOW_SPM,
     .tokens = "bos=[CLS] eos=[SEP] unk=<unk> sep=[SEP] pad=<pad> cls=[CLS] mask=[MASK]~",
     .single = "cAs",
     .pair = "cAsB1s1",
     .normalizers = ONE_SPACE QUOTES,
     .lowers_by_default = true},
    {.names = "BigBirdTokenizer",
     .models = "big_bird",
     .form = SLOW_SPM,
     .tokens = "bos=<s> eos=</s> unk=<unk> sep=[SEP] pad=<pad> cls=[CLS] mask=[MASK]~",
     .single = "cAs",
     .pair = "cAsB1s1"},
    {.names = "DebertaV2Tokenizer",
     .models = "deberta-v2",
     .form = SLOW_SPM,
     .tokens = "bos=[CLS] eos=[SEP] unk=[UNK] sep=[SEP] pad=[PAD] cls=[CLS] mask=[MASK]",
     .single = "cAs",
     .pair = "cAsB1s1"},
    {.names = "XLMRobertaTokenizer",
     .models = "xlm-roberta xlm-roberta-xl xmod",
     .form = SLOW_SPM,
     .tokens = OF_ROBERTA,
     .single = "cAs",
     .pair = "cAssBs",
     .head = "<s> <pad> </s> <unk>",
     .skipped = 3,
     .tail = "<mask>"},
    {.names = "CamembertTokenizer",
     .models = "camembert",
     .form = SLOW_SPM,
     .tokens = OF_ROBERTA,
     .single = "cAs",
     .pair = "cAssBs",
     .head = "<s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED",
     .skipped = 1,
     .tail = "<mask>"},
    {.names = "MBartTokenizer",
     .models = "",
     .form = SLOW_SPM,
     .tokens = OF_ROBERTA " lang=en_XX",
     .single = "Ael",
     .pair = "ABel",
     .head = "<s> <pad> </s> <unk>",
     .skipped = 3,
     .tail = OF_MBART "<mask>"},
    {.names = "MBart50Tokenizer",
     .models = "",
     .form = SLOW_SPM,
     .tokens = OF_ROBERTA " lang=en_XX",
     .single = "lAe",
     .pair = "lABe",
     .head = "<s> <pad> </s> <unk>",
     .skipped = 3,
     .tail = OF_MBART OF_MBART50 "<mask>"},
    {.names = "LlamaTokenizer CodeLlamaTokenizer",
     .models = "llama mistral mixtral phi3",
     .form = SLOW_SPM,
     .tokens = "bos=<s> eos=</s> unk=<unk>",
     .single = "bAe",
     .pair = "bAeb1B1e1",
     .has_legacy = true,
     .adds_by_settings = true,
     .bos_by_default = true},
    {.names = "GemmaTokenizer",
     .models = "gemma gemma2 gemma3_text",
     .form = SLOW_SPM,
     .tokens = "bos=<bos> eos=<eos> unk=<unk> pad=<pad>",
     .single = "bAe",
     .pair = "bAebBe",
     .adds_by_settings = true,
     .bos_by_default = true},
    {.names = "MarianTokenizer",
     .models = "marian",
     .form = SLOW_SPM_VOCAB,
     .tokens = "eos=</s> unk=<unk> pad=<pad>",
     .single = "Ae",
     .pair = "ABe"},
    {.names = "M2M100Tokenizer",
     .models = "m2m_100",
     .form = SLOW_SPM_VOCAB,
     .tokens = "bos=<s> eos=</s> unk=<unk> sep=</s> pad=<pad> lang=__en__",
     .single = "lAe",
     .pair = "lABe",
     .tail = OF_M2M100},
};

static bool has_word(const char *list, struct text_span word)
{
    struct text_span rest = text_span_of(list), one;
    while (word.length > 0 && text_next(&rest, ' ', &one))
        if (one.length == word.length && memcmp(one.at, word.at, word.length) == 0)
            return true;
    return false;
}

const struct slow_class *slow_class_find(struct text_span name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(classes); i++)
        if (has_word(classes[i].names, name))
            return &classes[i];
    return NULL;
}

const struct slow_class *slow_class_of_model(struct text_span model_type)
{
    for (size_t i = 0; i < ARRAY_LENGTH(classes); i++)
        if (has_word(classes[i].models, model_type))
            return &classes[i];
    return NULL;
}
