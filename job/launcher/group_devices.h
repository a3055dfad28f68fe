/* Group devices: which of a host's chips a group has, by its environment. */
#pragma once

struct group_devices {
        char **names; /* one a chip; NULL = their indices will do */
        char *text;   /* that they point into */
};

/* group_devices_find() - "0,1,2" of the runtime's variable, or of REMUDA_DEVICES, when it names as many as
 * there are chips. Released with group_devices_free(). */
struct group_devices group_devices_find(const char *runtime, unsigned chips);
void group_devices_free(struct group_devices *devices);
