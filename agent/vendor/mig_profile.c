/* MIG profile: names that follow from how many slices a board has. */
#include "agent/vendor/mig_profile.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Boards with MIG; the first range that holds a device id counts. */
static const struct {
        uint16_t from, to;
        unsigned slices;
} boards[] = {
        { 0x20b7, 0x20b7, 4 }, /* A30 */
        { 0x20b0, 0x20ff, 7 }, /* A100, A800 */
        { 0x2300, 0x23ff, 7 }, /* H100, H200, H800, H20, GH200 */
        { 0x2900, 0x29ff, 7 }, /* B100, B200, GB200 */
        { 0x2bb5, 0x2bb5, 4 }, /* RTX PRO 6000 Blackwell Server Edition */
        { 0x3180, 0x31ff, 7 }, /* B300, GB300 */
};

static unsigned slices_of(uint16_t device)
{
        for (size_t i = 0; i < ARRAY_SIZE(boards); i++)
                if (device >= boards[i].from && device <= boards[i].to)
                        return boards[i].slices;
        return 0;
}

void mig_profile_of(uint16_t device, uint64_t gib, unsigned gi, struct mig_profile *ret)
{
        unsigned whole = slices_of(device);

        *ret = (struct mig_profile){ .share = gi >= 7 ? 8 : gi >= 3 ? 4 : gi >= 1 ? 2 : 1 };
        /* Of eight parts of the memory seven have compute of their own; half of seven is 3 or 4. */
        if (gi == 0)
                ret->slices = whole;
        else if (whole == 7)
                ret->slices = ret->share == 2 ? 0 : 8 / ret->share;
        else
                ret->slices = whole / ret->share;
        if (ret->slices == 0 || gib == 0 || gi >= MIG_INSTANCES) {
                ret->slices = 0;
                return;
        }
        ret->of_slices = whole;
        (void) text_format(ret->name, sizeof(ret->name), "%ug.%ugb", ret->slices,
                           (unsigned) ((gib + ret->share / 2) / ret->share));
}

void mig_profile_resource(const struct mig_profile *profile, char *ret, size_t ret_bytes)
{
        (void) text_format(ret, ret_bytes, "nvidia.com/mig%s%s", profile->name[0] != '\0' ? "-" : "",
                           profile->name);
}
