-- A whole conversation by Neovim, with the settings that docs/editors.md shows. Prints one JSON object a step.
-- usage: nvim --clean --headless -l conversation.lua SETTINGS FILE, with the inputs in $STALLS and $ASKS.
local settings, file = arg[1], arg[2]
local stalls, asks = vim.env.STALLS, vim.env.ASKS
local messages, progress, events, echoed, questions, exit_code = {}, {}, {}, {}, {}, nil

local bench = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), "bench.lua"))
local say, wait, watch = bench.say, bench.wait, bench.watch

watch("window/showMessage", messages)
watch("$/progress", progress)
watch("run/event", events)
vim.api.nvim_echo = function(chunks) -- else messages would stand between the lines of JSON
  table.insert(echoed, chunks)
end
local choice -- the user's, by its number
vim.ui.select = function(items, options, choose)
  table.insert(questions, { prompt = options.prompt, items = vim.tbl_map(options.format_item, items) })
  choose(items[choice])
end

vim.cmd("filetype on")
vim.lsp.config("agent-sidecar", {
  on_exit = function(code)
    exit_code = code
  end,
})
dofile(settings)
vim.cmd.edit(vim.fn.fnameescape(file))
local client
local function attach()
  wait("the client", function()
    client = vim.lsp.get_clients({ name = "agent-sidecar" })[1]
    return client and client.initialized and vim.lsp.buf_is_attached(0, client.id)
  end)
end
attach()
say("attached", { root = client.root_dir, encoding = client.offset_encoding, uri = vim.uri_from_bufnr(0) })

local function request(method, params)
  local reply
  local _, id = client:request(method, params, function(err, result)
    reply = { error = err, result = result }
  end)
  return id, function()
    wait("the answer to " .. method, function()
      return reply
    end)
    return reply.result, reply.error
  end
end

local function execute(command, ...)
  local _, answer = request("workspace/executeCommand", { command = command, arguments = { ... } })
  return answer
end

local function shown(text)
  return function()
    for _, report in ipairs(progress) do
      if (report.value.message or ""):find(text, 1, true) then
        return report
      end
    end
  end
end

-- Unsaved text.
vim.api.nvim_buf_set_lines(0, 0, -1, false, { "unsaved", "text 😋" })
vim.api.nvim_buf_set_text(0, 1, 5, 1, 9, { "more" })
say("documents", execute("sidecar.showState")().documents)

-- The user's own commands.
vim.cmd("Sidecar hello there")
wait("the message", function()
  return #messages >= 2
end)
say("message", messages[2])

-- A run that never ends, until its user cancels the progress that Neovim was asked to create.
progress = {}
watch("$/progress", progress)
local answer = execute("sidecar.run", stalls)
wait("the beginning", shown("Once upon a time"))
local token = progress[1].token
client:notify("window/workDoneProgress/cancel", { token = token })
say("cancelled", { status = answer().status, first = progress[1].value, last = progress[#progress].value })
say("silent", #events == 0)

-- The sidecar's own methods, by the same client.
local created = select(2, request("createSession", { sessionId = "nvim" }))()
say("createSession", { sessionId = created.session.sessionId, cwd = created.session.cwd })
local hello = select(2, request("run", { sessionId = "nvim", input = "hello" }))()
say("run", hello.text)
say("explainRun", select(2, request("explainRun", { sessionId = "nvim", runId = hello.runId }))())
say("events", { first = events[1].type, last = events[#events].type })
say("getState", vim.tbl_keys(select(2, request("getState"))())) -- no params at all

-- A call that needs consent; Esc is no choice.
local function answered(number)
  choice = number
  return select(2, request("run", { sessionId = "nvim", input = asks }))().text
end
say("allowed", answered(1))
say("dismissed", answered(nil))
say("question", questions[1])

-- Neovim throws away what is answered with "request cancelled"; a run is answered with its result.
local id, story = request("run", { sessionId = "nvim", input = stalls })
wait("the run", function()
  return events[#events].type == "message.delta"
end)
client:cancel_request(id)
say("cancelRequest", story().status)

say("live", events)

local function stop()
  exit_code = nil
  client:stop()
  wait("the end", function()
    return exit_code and #vim.lsp.get_clients() == 0
  end)
  return exit_code
end

-- Another sidecar, and all of it again.
say("exit", stop())
events = {}
watch("run/event", events)
vim.cmd.doautocmd("FileType")
attach()
local resumed = select(2, request("resumeSession", { sessionId = "nvim", replayFrom = { type = "start" } }))()
wait("the replay", function()
  return #events > 0 and events[#events].seq == resumed.lastSeq
end)
say("replayed", events)
say("exitAgain", stop())
say("echoed", echoed)
local log = vim.lsp.get_log_path()
say("log", vim.fn.filereadable(log) == 1 and vim.fn.readfile(log) or {})
