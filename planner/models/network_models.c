/* The table of shipped models, and their families' sizes. */
#include "planner/models/network_models.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/models/network_language.h"
#include "planner/models/network_vision.h"

#define TOKENS_MAX ((uint64_t) 1 << 20)

static const char torchvision[] = "torchvision model table";
static const char bert[] = "BERT with pooler, google-research/bert; 24 s H^2 + 4 s^2 H FLOP a layer";
static const char gpt2[] = "GPT-2 as released by OpenAI; 24 s H^2 + 4 s^2 H FLOP a layer, 2 s V H the head";
static const char llama[] = "Llama 3 model card and released weights";

/* Multiply-adds of the transformers: half the published FLOP formula. */
/* clang-format off */
const struct network_model network_models[] = {
        /* name          title            parameters multiply-adds tolerance tokens default source */
        { "resnet18",    "ResNet-18",       11689512, 1.81e9,   0.005,    0,    0, torchvision },
        { "resnet50",    "ResNet-50",       25557032, 4.09e9,   0.005,    0,    0, torchvision },
        { "resnet101",   "ResNet-101",      44549160, 7.80e9,   0.005,    0,    0, torchvision },
        { "vgg16",       "VGG-16",         138357544, 15.47e9,  0.005,    0,    0, torchvision },
        { "densenet121", "DenseNet-121",     7978856, 2.83e9,   0.005,    0,    0, torchvision },
        { "bert-base",   "BERT-base",      109482240, 48.3e9,   0.005,  512,  512, bert },
        { "bert-large",  "BERT-large",     335141888, 167.5e9,  0.005,  512,  512, bert },
        { "gpt2",        "GPT-2 small",    124439808, 146e9,    0.005, 1024, 1024, gpt2 },
        { "gpt2-medium", "GPT-2 medium",   354823168, 413.5e9,  0.005, 1024, 1024, gpt2 },
        { "gpt2-large",  "GPT-2 large",    774030080, 887.5e9,  0.005, 1024, 1024, gpt2 },
        { "gpt2-xl",     "GPT-2 XL",      1557611200, 1753.5e9, 0.005, 1024, 1024, gpt2 },
        { "llama3-8b",   "Llama-3-8B",    8030261248, 0,        0,        0, 8192, llama },
        { "llama3-70b",  "Llama-3-70B",  70553706496, 0,        0,        0, 8192, llama },
        { NULL, NULL, 0, 0, 0, 0, 0, NULL },
};

/* Rows as above, of those that are transformers. */
static const struct {
        const char *name;
        struct network_language sizes;
} transformers[] = {
        { "bert-base",   { .layers = 12, .width = 768,  .heads = 12, .key_value_heads = 12, .feed_forward = 3072,
                           .vocabulary = 30522, .positions = 512, .types = 2, .pooler = true } },
        { "bert-large",  { .layers = 24, .width = 1024, .heads = 16, .key_value_heads = 16, .feed_forward = 4096,
                           .vocabulary = 30522, .positions = 512, .types = 2, .pooler = true } },
        { "gpt2",        { .layers = 12, .width = 768,  .heads = 12, .key_value_heads = 12, .feed_forward = 3072,
                           .vocabulary = 50257, .positions = 1024, .tied_head = true } },
        { "gpt2-medium", { .layers = 24, .width = 1024, .heads = 16, .key_value_heads = 16, .feed_forward = 4096,
                           .vocabulary = 50257, .positions = 1024, .tied_head = true } },
        { "gpt2-large",  { .layers = 36, .width = 1280, .heads = 20, .key_value_heads = 20, .feed_forward = 5120,
                           .vocabulary = 50257, .positions = 1024, .tied_head = true } },
        { "gpt2-xl",     { .layers = 48, .width = 1600, .heads = 25, .key_value_heads = 25, .feed_forward = 6400,
                           .vocabulary = 50257, .positions = 1024, .tied_head = true } },
        { "llama3-8b",   { .layers = 32, .width = 4096, .heads = 32, .key_value_heads = 8, .feed_forward = 14336,
                           .vocabulary = 128256, .rms = true } },
        { "llama3-70b",  { .layers = 80, .width = 8192, .heads = 64, .key_value_heads = 8, .feed_forward = 28672,
                           .vocabulary = 128256, .rms = true } },
};

static const struct {
        const char *alias, *name;
} aliases[] = {
        { "gpt2small", "gpt2" },
        { "llama38binstruct", "llama3-8b" },
        { "llama370binstruct", "llama3-70b" },
};
/* clang-format on */

/* Letters and digits alone, in lower case. */
static void plain(const char *name, char *ret, size_t ret_bytes)
{
        size_t size = 0;

        for (; *name != '\0' && size + 1 < ret_bytes; name++)
                if (isalnum((unsigned char) *name))
                        ret[size++] = (char) tolower((unsigned char) *name);
        ret[size] = '\0';
}

const struct network_model *network_model_find(const char *name)
{
        char wanted[NETWORK_NAME_BYTES], own[NETWORK_NAME_BYTES];

        plain(name, wanted, sizeof(wanted));
        for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
                if (strcmp(aliases[i].alias, wanted) == 0)
                        plain(aliases[i].name, wanted, sizeof(wanted));
        for (const struct network_model *model = network_models; model->name != NULL; model++) {
                plain(model->name, own, sizeof(own));
                if (strcmp(own, wanted) == 0)
                        return model;
        }
        return NULL;
}

static void build_image(const char *name, struct network *network)
{
        if (strcmp(name, "resnet18") == 0)
                network_vision_resnet(network, (const unsigned[]){ 2, 2, 2, 2 }, false);
        else if (strcmp(name, "resnet50") == 0)
                network_vision_resnet(network, (const unsigned[]){ 3, 4, 6, 3 }, true);
        else if (strcmp(name, "resnet101") == 0)
                network_vision_resnet(network, (const unsigned[]){ 3, 4, 23, 3 }, true);
        else if (strcmp(name, "vgg16") == 0)
                network_vision_vgg16(network);
        else
                network_vision_densenet121(network);
}

int network_model_build(const struct network_model *model, uint64_t tokens, struct network *ret,
                        struct err *err)
{
        struct network network = { 0 };
        const struct network_language *sizes = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(transformers); i++)
                if (strcmp(transformers[i].name, model->name) == 0)
                        sizes = &transformers[i].sizes;
        if (sizes != NULL &&
            (tokens < 1 || tokens > TOKENS_MAX || (sizes->positions > 0 && tokens > sizes->positions)))
                return err_set(err, -EINVAL, "%s takes sequences of 1 to %" PRIu64 " tokens, not %" PRIu64,
                               model->title, sizes->positions > 0 ? sizes->positions : TOKENS_MAX, tokens);
        (void) text_copy(network.name, sizeof(network.name), model->title);
        if (sizes != NULL)
                network_language_transformer(&network, sizes, tokens);
        else
                build_image(model->name, &network);
        if (network.failed) {
                network_free(&network);
                return err_set(err, -ENOMEM, "no memory for %s", model->title);
        }
        *ret = network;
        return 0;
}
