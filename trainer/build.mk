# The trainer: one program a runtime, the same objects but for the backend's file. A package of its own: `make trainer
# check-trainer` builds and tests it, everything else builds and is tested without MPI, BLAS, OpenCL, libraries of images and the data set.
.PHONY: trainer check-trainer
ifeq ($(packages),)
ifeq ($(MAKELEVEL),0)
$(info trainer: no Open MPI with OpenBLAS, libjpeg and libpng here, the trainer is left out (Debian: tools/deps trainer))
endif
trainer check-trainer:
	@echo "trainer: Open MPI (mpicc), OpenBLAS, libjpeg and libpng (pkg-config openblas libjpeg libpng) are wanted: tools/deps trainer" >&2; exit 1
else
mpi_cflags  := $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile 2>/dev/null))
mpi_libs    := $(shell mpicc --showme:link 2>/dev/null)
blas_cflags := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags openblas 2>/dev/null))
blas_libs   := $(shell pkg-config --libs openblas 2>/dev/null)
image_libs  := $(shell pkg-config --libs libjpeg libpng 2>/dev/null)

# No trap is taken from a comparison: without the promise the ReLU stays a branch for each number.
loops := -O3 -fno-math-errno -fno-trapping-math
$(foreach folder,trainer trainer_data trainer_in_step trainer_operators trainer_export trainer_measuring trainer_strategies trainer_tiles,$(eval CFLAGS_$(folder) := $(mpi_cflags) $(loops)))
CFLAGS_trainer_backends   := $(blas_cflags) $(loops)
CFLAGS_trainer_sunway     := $(loops)
# Most of a step, and each rank's own: a multiplication and its addition may be one instruction.
$(B)/obj/trainer/backends/convolution.o: CFLAGS_trainer_backends += -ffp-contract=fast
$(B)/obj/trainer/sunway/cpe_product.o: CFLAGS_trainer_sunway += -ffp-contract=fast

trainer  := $(filter-out trainer/main.c $(call tests_of,trainer),$(wildcard trainer/*.c) $(call sources,$(addprefix trainer/,data in_step operators export measuring strategies tiles))) \
            trainer/backends/convolution.c $(wildcard trainer/sunway/cpe*.c) trainer/sunway/threads.c trainer/sunway/tile_plan.c
# CLBlast and an OpenCL loader are wanted for the opencl build; without them the others are built all the same.
opencl_libs := $(if $(wildcard /usr/include/clblast_c.h /usr/local/include/clblast_c.h),$(shell pkg-config --libs OpenCL 2>/dev/null))
ifneq ($(opencl_libs),)
opencl_libs += -lclblast
else ifeq ($(MAKELEVEL),0)
$(info trainer: no OpenCL with CLBlast here, remuda-train-opencl is left out (Debian: ocl-icd-opencl-dev libclblast-dev))
endif

# The sunway build's other way to its CPEs (slave cores), where a compiler for it is: athread with Sunway's own compiler, which builds
# the CPEs' half by itself (SLAVE_CC), for local stores of so many bytes (SW26010: 65536, SW26010-Pro: 262144).
variants :=
SLAVE_CC ?= sw5cc -slave
SLAVE_STORE_BYTES ?= 65536
CFLAGS_trainer_sunway += -DATHREAD_STORE_BYTES=$(SLAVE_STORE_BYTES)
cpe_objects :=
ifeq ($(shell $(CC) -E -include athread.h -x c /dev/null >/dev/null 2>&1 && echo yes),yes)
variants += athread
cpe_sources := $(filter-out trainer/sunway/cpe_group.c,$(wildcard trainer/sunway/cpe*.c)) trainer/sunway/athread_cpe.c
cpe_objects := $(patsubst %.c,$(B)/slave/%.o,$(cpe_sources))
$(B)/slave/%.o: %.c
	@mkdir -p $(@D)
	$(SLAVE_CC) $(ALL_C) -DATHREAD_STORE_BYTES=$(SLAVE_STORE_BYTES) -c -o $@ $<
endif
variant_objects := $(patsubst %,$(B)/obj/trainer/sunway/%.o,$(variants)) $(cpe_objects)

trainers := cpu sunway $(if $(opencl_libs),opencl)
trainer: $(addprefix $(B)/bin/remuda-train-,$(trainers)) $(B)/lib/libremuda-train.so ## build the trainer alone
programs: trainer
trainer_tests := $(patsubst %.c,$(B)/tests/%,$(notdir $(call tests_of,trainer)))
check-trainer: trainer $(trainer_tests) ## its unit and integration tests alone
	@B=$(B) TEST_ONLY='^test_train' tests/run-tests $(B)/tests tests/integration

$(B)/lib/trainer.a: $(call object,$(trainer))
$(addprefix $(B)/bin/remuda-train-,$(trainers)): $(B)/bin/remuda-train-%: $(B)/obj/trainer/main.o \
                $(B)/obj/trainer/backends/%.o $(B)/lib/trainer.a $(call archive,base io agent planner job)
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call whole,$^) $(mpi_libs) $(if $(filter %opencl,$@),$(opencl_libs),$(blas_libs)) $(image_libs) -ljansson -lprotobuf-c -lz -lm -lpthread -ldl

$(B)/bin/remuda-train-sunway: $(variant_objects)
$(B)/bin/remuda-train-cpu: $(B)/obj/trainer/backends/openblas.o
$(B)/bin/remuda-train-opencl: $(patsubst %,$(B)/obj/trainer/backends/opencl_%.o,choice compile input copy tuned)

# ONNX's messages, which the planner reads too.
$(patsubst %,$(B)/obj/trainer/export/onnx_%.o,builder read write): | $(B)/generated/planner/models/onnx.pb-c.h

# The kernels' source as a C string.
$(B)/generated/opencl_kernels.h: trainer/backends/opencl_kernels.cl
	@mkdir -p $(@D)
	@{ echo 'static const char opencl_kernels[] ='; sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $<; echo ';'; } >$@
$(B)/obj/trainer/backends/opencl.o generated: $(B)/generated/opencl_kernels.h

# For other people's loops: a shared library, position independent, with nothing of ours visible but its header's names.
wrapper := $(call sources,trainer/wrapper) trainer/data/owned.c trainer/data/sampler.c trainer/in_step/mover.c trainer/in_step/patience.c trainer/in_step/recut.c trainer/in_step/word.c trainer/json_line.c trainer/random.c \
           trainer/shares.c trainer/world.c io/clock.c io/whole_file.c io/write_all.c planner/shards/live_shares.c base/decimal.c base/err.c base/text.c base/timestamp.c base/sha256.c \
           $(addprefix base/json/json_,field.c line.c scan.c table.c table_encode.c writer.c written.c)
$(B)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -fPIE,$(ALL_C)) $(mpi_cflags) -fPIC -MMD -MP -c -o $@ $<
$(B)/lib/libremuda-train.so: $(patsubst %.c,$(B)/pic/%.o,$(wrapper)) trainer/wrapper/symbols.map
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -Wl,-z,defs -Wl,-soname,libremuda-train.so.0 -Wl,--version-script=trainer/wrapper/symbols.map $(MARKS) \
		$(LDFLAGS) -o $@ $(filter %.o,$^) $(mpi_libs) -ljansson -lm
	@ln -sfn $(@F) $@.0 # the name that a program which is linked with it asks for
-include $(shell find $(B)/pic -name '*.d' 2>/dev/null)

# Tests and fuzz targets of the trainer's parts.
$(filter $(B)/tests/test_train_% $(B)/fuzz/fuzz_train_%,$(unit) $(fuzzers)): $(B)/lib/trainer.a
$(B)/tests/test_train_% $(B)/fuzz/fuzz_train_%: LIBS += $(mpi_libs) $(image_libs)
endif
