/* Readers: the list of them. */
#include "agent/discovery/reader.h"

#include <stddef.h>

#include "base/cleanup.h"

extern const struct reader reader_nvidia, reader_amd, reader_huawei, reader_hygon, reader_habana,
        reader_intel_phi, reader_aws, reader_google, reader_tenstorrent, reader_nec, reader_xilinx,
        reader_unknown;

static const struct reader *const readers[] = {
        &reader_nvidia, &reader_amd,    &reader_huawei,      &reader_hygon, &reader_habana, &reader_intel_phi,
        &reader_aws,    &reader_google, &reader_tenstorrent, &reader_nec,   &reader_xilinx, &reader_unknown,
};

const struct reader *reader_of(const struct vendor *vendor)
{
        for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
                if (readers[i]->vendor == vendor)
                        return readers[i];
        return NULL;
}
