# bench.mk: measurements. Run them on an idle machine.

##@ Measurements

BENCH_SRC := $(addprefix bench/,core_bench.c bench_case.c contender_attnd.c contender_plain.c machine.c)
JSON_BENCH_SRC := bench/json_bench.c
HTTP_BENCH_SRC := bench/http_load.c bench/http_floor.c
SOURCES += $(BENCH_SRC) $(JSON_BENCH_SRC) $(HTTP_BENCH_SRC)

$(BUILD)/bench/core_bench: $(call obj,$(BENCH_SRC)) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/bench/json_bench: $(call obj,$(JSON_BENCH_SRC)) $(SERVER_OBJ) $(BUILD)/libattn.a
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

$(BUILD)/bench/http_load $(BUILD)/bench/http_floor: $(BUILD)/bench/%: $(BUILD)/bench/%.o
	$(Q)$(LINK) $(LDFLAGS) $< $(if $(filter %floor.o,$<),$(call pkg,--libs,libmicrohttpd)) $(LDLIBS) -o $@

bench: bench-json $(if $(BENCH),,bench-models) $(BUILD)/bench/core_bench ## measure beside plain OpenBLAS, the machine, peers (BENCH='--quick --only RE')
	$(Q)python3 bench/run.py --program $(BUILD)/bench/core_bench --json build/bench.json $(BENCH)

bench-json: $(BUILD)/bench/json_bench ## reading and writing numbers beside jansson, Node's JSON, Python's json
	$(Q)python3 bench/json_text.py --program $<

bench-models: $(BUILD)/attnd ## whole models beside ONNX Runtime and PyTorch, the first answer, memory (BENCH='--quick --only bert')
	$(Q)python3 bench/models/measure.py --attnd $< --folder build/bench-models --json build/bench-models.json $(BENCH)

bench-http: $(BUILD)/attnd $(BUILD)/bench/http_load $(BUILD)/bench/http_floor ## HTTP by each format, beside a bare echo and peers (BENCH='--quick --only tiny')
	$(Q)python3 bench/wire.py --attnd $< --bin $(BUILD)/bench --json build/bench-http.json $(BENCH)

bench-replicas: $(BUILD)/attnd ## throughput of one and two servers behind HAProxy (docs/scaling.md)
	$(Q)python3 bench/replicas.py --attnd $(BUILD)/attnd

bench-peers: ## fetch the peers of `make bench`: onnxruntime-node by npm (PyTorch: apt-get install python3-torch)
	$(Q)cd bench/peers && npm install --ignore-scripts --no-package-lock --no-audit --no-fund

overload: $(BUILD)/attnd $(BUILD)/bench/http_load ## goodput at ten times the load, waits beside slow clients, the end of work of clients that left
	$(Q)python3 bench/overload.py --attnd $(BUILD)/attnd --load $(BUILD)/bench/http_load
	$(Q)python3 bench/slow_crowd.py --attnd $(BUILD)/attnd
	$(Q)python3 bench/client_gone.py --attnd $(BUILD)/attnd

$(BUILD)/tests/unit/core/accuracy: $(addprefix $(BUILD)/,tests/unit/core/accuracy.o tests/support/core/random.o libattn.a)
	$(Q)$(LINK) $(LDFLAGS) $^ $(LIBS_CORE) $(LDLIBS) -o $@

accuracy: $(BUILD)/tests/unit/core/accuracy ## float32 against float64, the worst of many inputs; writes docs/accuracy.md
	$(Q)$< docs/accuracy.md
