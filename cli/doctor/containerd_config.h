/* containerd config: what containerd's configuration (TOML) says of CDI. Pure.
 *
 * Read is the part of TOML that such files are made of: tables, dotted and quoted keys, comments, a value a
 * line, a list over several. */
#pragma once

#include <stdbool.h>

enum containerd_config_cdi { CONTAINERD_CONFIG_UNSAID, CONTAINERD_CONFIG_ON, CONTAINERD_CONFIG_OFF };

/* containerd_config_cdi() - `enable_cdi` of the plugin that starts containers for the kubelet, as
 * configurations of version 1
 * ([plugins.cri]), 2 ([plugins."io.containerd.grpc.v1.cri"]) and 3 ([plugins.'io.containerd.cri.v1.runtime'])
 * call it; in another table the word means nothing. */
enum containerd_config_cdi containerd_config_cdi(const char *text);

/* containerd_config_reads() - is @folder among its `cdi_spec_dirs`, or where they are not said among those
 * that are read then? /run and /var/run are one. */
bool containerd_config_reads(const char *text, const char *folder);
