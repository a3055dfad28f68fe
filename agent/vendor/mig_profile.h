/* MIG profile: what NVIDIA calls a slice of a GPU ("1g.10gb"), from the number of its GPU instance.
 *
 * The driver numbers instances by their size: 0 the whole GPU, 1-2 half, 3-6 a quarter of the memory, 7-14 an
 * eighth (seen, not documented). Procfs does not tell the profile itself: 3g and 4g of a board of seven
 * compute slices cannot be told apart, and 1g with a quarter of its memory counts as 2g. Memory is named as
 * NVIDIA does: its share of the board's GiB, rounded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIG_INSTANCES 15 /* the numbers of instances of which anything is known are below */

struct mig_profile {
        unsigned slices, of_slices; /* of compute; 0 of 0 = not known */
        unsigned share;             /* it has one part in so many of the memory */
        char name[16];              /* "1g.10gb"; "" = not known */
};

/* mig_profile_of() - of instance `gi` of a board.
 * @device: its PCI device id. A board that is not known to have MIG has profiles without a name
 * @gib: memory of the whole board; 0 = not known */
void mig_profile_of(uint16_t device, uint64_t gib, unsigned gi, struct mig_profile *ret);

/* mig_profile_resource() - what NVIDIA's device plugin counts slices of a profile under; "nvidia.com/mig"
 * where it has no name. */
void mig_profile_resource(const struct mig_profile *profile, char *ret, size_t ret_bytes);
