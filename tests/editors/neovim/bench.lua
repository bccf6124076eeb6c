-- What the scripts of this folder share: they print one JSON object a step, wait for conditions, and watch handlers.
local bench = {}

function bench.say(step, value)
  io.stdout:write(vim.json.encode({ step = step, value = value }), "\n")
end

function bench.wait(what, condition)
  if not vim.wait(20000, condition, 5) then
    io.stderr:write("waited in vain for ", what, "\n")
    io.stdout:flush()
    os.exit(1)
  end
end

-- What Neovim does with each is left as it is; this only watches.
function bench.watch(method, list)
  local original = vim.lsp.handlers[method]
  vim.lsp.handlers[method] = function(err, params, context, ...)
    table.insert(list, params)
    if original then
      return original(err, params, context, ...)
    end
  end
end

return bench
