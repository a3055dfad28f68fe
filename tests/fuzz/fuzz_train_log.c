/* Any bytes as a sample or clock log that a resumed run cuts back: what stays is a beginning of it, in whole
 * lines whose number is below the end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "trainer/record.h"

#define END 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        FILE *f = fdopen(memfd_create("log", MFD_CLOEXEC), "r+");
        char kept[4096];
        long end;

        if (f == NULL || size > sizeof(kept) || fwrite(data, 1, size, f) != size) {
                if (f != NULL)
                        (void) fclose(f);
                return 0;
        }
        rewind(f);
        if (record_cut_log(f, 1, END) < 0)
                abort();
        end = ftell(f);
        (void) fseek(f, 0, SEEK_END);
        if (end != ftell(f) || end > (long) size || (end > 0 && data[end - 1] != '\n'))
                abort();
        rewind(f);
        if (fread(kept, 1, (size_t) end, f) != (size_t) end || memcmp(kept, data, (size_t) end) != 0)
                abort();
        (void) fclose(f);
        return 0;
}
