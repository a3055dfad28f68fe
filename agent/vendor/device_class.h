/* Device class: whose chips a DeviceClass of Dynamic Resource Allocation means, where its name is one of
 * ours.
 *
 * `remuda-VENDOR` and `remuda-RUNTIME` are a promise (docs/how-to/dra.md); of any other name nothing is
 * known. Pure. */
#pragma once

#include <stdbool.h>

#define DEVICE_CLASS_PREFIX "remuda-"

/* Of claims that remuda-controller allocates by itself: no device of any slice is of it. */
#define DEVICE_CLASS_PLANNED "planned.remuda.dev"

/* device_class_is_ours() - does the name begin as those of our driver's classes do? */
bool device_class_is_ours(const char *name);

/* device_class_promises() - does the name say whose chips they are? */
bool device_class_promises(const char *name);

/* device_class_knows() - is what stands behind the prefix a vendor or a runtime of the rows? */
bool device_class_knows(const char *of);

/* device_class_takes() - may chips of this vendor and runtime be of the class, as far as its name says? */
bool device_class_takes(const char *name, const char *vendor, const char *runtime);

/* device_class_allows() - likewise, of chips of that vendor that programs of that runtime run on.
 * @vendor, @runtime: "" = any */
bool device_class_allows(const char *name, const char *vendor, const char *runtime);
