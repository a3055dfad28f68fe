/* Any bytes as a checkpoint: an error, or values that lie within the bytes, and lines that say how samples
 * were dealt, or are refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/checkpoint_file.h"
#include "trainer/data/dealings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_dealings(const char *bytes, size_t size, size_t batch)
{
        char *text = strndup(bytes, size);
        struct dealings d = { 0 };
        struct err err = { 0 };

        if (text == NULL)
                return;
        if (dealings_parse(text, batch, &d, &err) < 0 && err.msg[0] == '\0')
                abort();
        if (d.count > 0 && d.list[0].from != 0)
                abort();
        dealings_free(&d);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct checkpoint_file_facts facts = { 0 };
        const unsigned char *values = NULL;
        struct err err = { 0 };

        read_dealings((const char *) data, size, 40); /* a hash lies before those of a file */
        if (checkpoint_file_parse(data, size, &facts, &values, &err) < 0) {
                if (err.msg[0] == '\0')
                        abort();
                return 0;
        }
        if (values < data || facts.parameters * sizeof(float) > (size_t) (data + size - values))
                abort();
        read_dealings(facts.dealt, facts.dealt_bytes, facts.batch);
        return 0;
}
