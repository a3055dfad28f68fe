/* Finds a network among those measured, or fits the ring formula to them.
 *
 * Example: 10gbe:4. Measured are 8 ranks (0.523 ms a call) and 16 (0.908). The ring sends 2 (P - 1) messages:
 * 14 and 30; least squares through zero give (0.523 x 14 + 0.908 x 30) / (14^2 + 30^2) = 0.0315 ms a message,
 * and 4 ranks send 6: 0.189 ms. */
#include "planner/segments/segment_network.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Measured costs of an allreduce among so many ranks, and the formula's part of it: 2 (P - 1) messages, 2 (P
 * - 1) / P of the bytes. Source: the constants of MG-WFBP's distributed_optimizer.py. */
static const struct {
        const char *name;
        unsigned ranks;
        double alpha_ms, beta_ms_per_byte;
} measured[] = {
        { "10gbe", 8, 0.523027, 8.57075e-7 },
        { "10gbe", 16, 0.908098, 7.39565e-7 },
        { "56gib", 16, 0.235837, 4.05948e-7 },
};

/* The two constants of the ring formula that fit the measured ones best (least squares through zero). */
static void fit_ring(const char *name, double ranks, struct segment_level *level)
{
        double messages_of = 0, messages_squared = 0, bytes_of = 0, bytes_squared = 0;

        for (size_t i = 0; i < ARRAY_SIZE(measured); i++) {
                double p = measured[i].ranks;

                if (strcmp(measured[i].name, name) != 0)
                        continue;
                messages_of += measured[i].alpha_ms * 2 * (p - 1);
                messages_squared += 2 * (p - 1) * 2 * (p - 1);
                bytes_of += measured[i].beta_ms_per_byte * 2 * (p - 1) / p;
                bytes_squared += 2 * (p - 1) / p * 2 * (p - 1) / p;
        }
        level->alpha_ms = 2 * (ranks - 1) * messages_of / messages_squared;
        level->beta_ms_per_byte = 2 * (ranks - 1) / ranks * bytes_of / bytes_squared;
}

static int find_known(const char *network, const char *colon, struct segment_level *ret, bool *ret_estimate,
                      struct err *err)
{
        size_t size = (size_t) (colon - network);
        const char *name = size == 5 && memcmp(network, "10gbe", 5) == 0   ? "10gbe"
                           : size == 5 && memcmp(network, "56gib", 5) == 0 ? "56gib"
                                                                           : NULL;
        uint64_t ranks;

        if (name == NULL || text_parse_uint64(colon + 1, &ranks) < 0 || ranks < 2 || ranks > 1000000)
                return err_set(err, -EINVAL,
                               "--network %.60s: give 10gbe:RANKS, 56gib:RANKS (2 or more) or "
                               "ALPHA_MS,BETA_MS_PER_BYTE",
                               network);
        *ret_estimate = false;
        for (size_t i = 0; i < ARRAY_SIZE(measured); i++)
                if (strcmp(measured[i].name, name) == 0 && measured[i].ranks == ranks) {
                        *ret = (struct segment_level){ measured[i].alpha_ms, measured[i].beta_ms_per_byte };
                        return 0;
                }
        fit_ring(name, (double) ranks, ret);
        *ret_estimate = true;
        return 0;
}

int segment_network_find(const char *network, struct segment_level *ret, bool *ret_estimate, struct err *err)
{
        const char *colon = strchr(network, ':'), *comma = strchr(network, ',');
        struct segment_level level = { 0 };
        char alpha[64];

        if (colon != NULL)
                return find_known(network, colon, ret, ret_estimate, err);
        if (comma == NULL || !text_format(alpha, sizeof(alpha), "%.*s", (int) (comma - network), network) ||
            text_parse_double(alpha, &level.alpha_ms) < 0 || level.alpha_ms < 0 ||
            text_parse_double(comma + 1, &level.beta_ms_per_byte) < 0 || level.beta_ms_per_byte < 0)
                return err_set(
                        err, -EINVAL,
                        "--network %.60s: give 10gbe:RANKS, 56gib:RANKS or ALPHA_MS,BETA_MS_PER_BYTE, e.g. "
                        "0.5,8.5e-7",
                        network);
        *ret = level;
        *ret_estimate = false;
        return 0;
}
