/* Claimed devices: the chips of a container that has several requests of claims.
 *
 * Each request's variables are set when the container is made, and of those of one name the last stands: half
 * of the chips would be in REMUDA_DEVICES. So each says its own beside, under a name that no other has:
 *
 *      REMUDA_CLAIM_NVIDIA_COM_GPU__11111111_0000_4000_8000_000000000001_0=GPU-a=0000:18:00.0,GPU-b=
 *
 * Pure but for the heap. */
#pragma once

#include <stdbool.h>

#define CLAIMED_DEVICES_PREFIX "REMUDA_CLAIM_"

struct claimed_devices {
        char *ids,
                *places; /* "ID,ID", and the PCI addresses in the same order; places NULL: not all have one */
};

/* claimed_devices_find() - all devices of the resource that those of @devices (REMUDA_DEVICES) are of, by the
 * name of the variables. Return: were there several requests of it? Then claimed_devices_free() is due. */
bool claimed_devices_find(char *const *environment, const char *devices, struct claimed_devices *ret);
void claimed_devices_free(struct claimed_devices *devices);

/* claimed_devices_take() - this process has them in its environment from now on, for all that reads it later.
 */
void claimed_devices_take(void);
