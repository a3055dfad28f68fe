/* Any bytes as a file of fusion rules: refused with the file's name first, or rows that a pass could do. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/operators/fusion_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fusion_file f;
        struct err err = { 0 };
        int r = fusion_file_parse("fuzz", (const char *) data, size, &f, &err);

        if (r < 0 && strncmp(err.msg, "fuzz", 4) != 0)
                abort();
        if (r == 0 && f.count > FUSION_FILE_ROWS_MAX)
                abort();
        for (size_t i = 0; r == 0 && i < f.count; i++) {
                if (f.rows[i].part_count < 2 || f.rows[i].part_count > OP_PARTS_MAX ||
                    fusion_file_never(&f.rows[i]) != (f.rows[i].library[0] == '\0'))
                        abort();
                for (size_t k = 0; k < f.rows[i].part_count; k++)
                        if (f.rows[i].parts[k] >= OP_SINGLES)
                                abort();
        }
        return 0;
}
