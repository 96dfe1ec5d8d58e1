# bench.mk: measurements. Run them on an idle machine. BENCH has options of the scripts, which read it in the environment, because
# a shell would read the brackets of BENCH='--only (bert|gpt2)'.

##@ Measurements

BENCH_SRC := $(addprefix bench/,core_bench.c bench_case.c contender.c machine.c)
JSON_BENCH_SRC := bench/json_bench.c
HTTP_BENCH_SRC := $(addprefix bench/http/,http_load.c http_floor.c)
HIDE_SRC := $(if $(filter x86_64,$(ARCH)),bench/peers/hide_avx512.c)
SOURCES += $(BENCH_SRC) $(JSON_BENCH_SRC) $(HTTP_BENCH_SRC) $(HIDE_SRC)
# What run.py asks for: core_bench, and beside it what peers preload.
CORE_BENCH := $(BUILD)/bench/core_bench $(HIDE_SRC:bench/%.c=$(BUILD)/bench/%.so)

$(BUILD)/bench/core_bench: $(call obj,$(BENCH_SRC)) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/bench/peers/hide_avx512.so: $(call obj,$(HIDE_SRC))
	$(Q)$(LINK) -shared $< -o $@

$(BUILD)/bench/json_bench: $(call obj,$(JSON_BENCH_SRC)) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/bench/http/http_load $(BUILD)/bench/http/http_floor: %: %.o
	$(Q)$(LINK) $(LDFLAGS) $< $(if $(filter %floor.o,$<),$(call pkg,--libs,libmicrohttpd)) $(LDLIBS) -o $@

bench: bench-json $(if $(BENCH),,bench-models) $(CORE_BENCH) ## measure beside the machine's limits and peers (BENCH='--quick --only (decode|layer)')
	$(Q)python3 bench/run.py --program $(BUILD)/bench/core_bench --page build/bench.md --json build/bench.json

bench-check: $(BUILD)/bench/core_bench ## compare what the contenders of `make bench` compute, at tiny sizes (BENCH='--only linear')
	$(Q)python3 bench/run.py --program $< --check --kernel all --threads 2 $(if $(BENCH),,--without peers)

bench-aims: $(CORE_BENCH) ## the cases that have an aim; writes a page and all rounds to bench/results
	$(Q)python3 bench/run.py --program $< --aims --results bench/results

bench-json: $(BUILD)/bench/json_bench ## reading and writing numbers beside jansson, Node's JSON, Python's json
	$(Q)python3 bench/json_text.py --program $<

bench-models: $(BUILD)/attnd $(CORE_BENCH) ## whole models beside ONNX Runtime and PyTorch, new tokens, the first answer, memory (BENCH='--quick --only bert')
	$(Q)python3 bench/models/measure.py --attnd $< --program $(BUILD)/bench/core_bench --folder build/bench-models --json build/bench-models.json

bench-http: $(BUILD)/attnd $(BUILD)/bench/http/http_load $(BUILD)/bench/http/http_floor ## HTTP by each format, beside a bare echo and peers (BENCH='--quick --only tiny')
	$(Q)python3 bench/http/wire.py --attnd $< --bin $(BUILD)/bench/http --json build/bench-http.json

bench-replicas: $(BUILD)/attnd ## throughput of one and two servers behind HAProxy (docs/scaling.md)
	$(Q)python3 bench/http/replicas.py --attnd $(BUILD)/attnd

bench-peers: ## fetch the peers of `make bench`: onnxruntime-node by npm (PyTorch: apt-get install python3-torch)
	$(Q)cd bench/peers && npm install --ignore-scripts --no-package-lock --no-audit --no-fund

overload: $(BUILD)/attnd $(BUILD)/bench/http/http_load ## goodput at ten times the load, waits beside slow clients, the end of work of clients that left
	$(Q)python3 bench/http/overload.py --attnd $(BUILD)/attnd --load $(BUILD)/bench/http/http_load
	$(Q)python3 bench/http/slow_crowd.py --attnd $(BUILD)/attnd
	$(Q)python3 bench/http/client_gone.py --attnd $(BUILD)/attnd

$(BUILD)/tests/unit/core/accuracy: $(addprefix $(BUILD)/,tests/unit/core/accuracy.o tests/support/core/random.o libattn.a)
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_CORE) $(LDLIBS) -o $@

accuracy: $(BUILD)/tests/unit/core/accuracy ## float32 against float64, the worst of many inputs; writes docs/accuracy.md
	$(Q)$< docs/accuracy.md
